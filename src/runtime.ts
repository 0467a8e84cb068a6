import { systemClock } from './base/clock.ts'
import type { Clock } from './base/clock.ts'
import { describeError } from './base/errors.ts'
import { ensureFolder } from './base/files.ts'
import { systemRandomness } from './base/ids.ts'
import type { Randomness } from './base/ids.ts'
import { LIMITS } from './base/limits.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Tool } from './loop/ports.ts'
import { lookForBootsIn } from './processes/boots.ts'
import type { Crew, CrewOptions, OwnWorkerOptions, Whose } from './workers/crew.ts'
import type { LiveEvent } from './workers/agents/execute-agent.ts'
import { discreetly, openSecrets } from './workers/open-secrets.ts'
import { homePaths } from './workers/home.ts'
import { refuseOlderBackup, rememberSeen } from './workers/history/restored.ts'
import type { Worker, WorkerOptions } from './workers/worker.ts'
import type { WorkspaceDesk } from './workers/workspace/desk.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/store.ts'

export interface RuntimeOptions {
  /** The folder for everything outside the database, and by default for the database too. */
  readonly home: string
  /** `sqlite:PATH`; by default a file in the home folder. */
  readonly store?: string
  /** Agents, tools, policy, and how much at once; as `holdfast.config.json` has it. */
  readonly config?: LoadedConfig
  /** `when-needed`: what is wrong with an agent is said when it is to do something, and who only looks need not load it. */
  readonly agents?: 'now' | 'when-needed'
  /** The variables from which tools get the harmless ones. */
  readonly environment?: Readonly<Record<string, string>>
  /** Goes on with a database that was restored from an older backup. */
  readonly acceptRestore?: boolean
  /** Hears of what went wrong in the background and will be tried again. */
  readonly warn?: (message: string) => void
}

export interface Runtime {
  readonly home: string
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly leaseMs: number
  readonly backlog: number
  /** The names of the agents that this process can be. */
  readonly agents: readonly string[]
  /** What was configured, for whoever explains it. */
  readonly config: LoadedConfig | undefined
  /** An agent's own tools; those of MCP servers are known only once the servers were asked. */
  toolsOf(agent: string): Promise<ReadonlyMap<string, Tool> | undefined>
  /** One tool of a run's agent; of an MCP server as a person has accepted it. */
  toolOf(run: Whose, tool: string): Promise<Tool | undefined>
  /** Makes this process a worker of the given kind. */
  registerWorker(kind: WorkerOptions['kind'], own: OwnWorkerOptions): Promise<Worker>
  /** What people see of the files of runs, and do about them. */
  workspaces(): Promise<WorkspaceDesk>
  /** Tells what the agents of this process say and do, as it happens; the store has what must not be missed. */
  watch(listener: (event: LiveEvent) => void): () => void
  close(): Promise<void>
}

export type { LiveEvent, OwnWorkerOptions }

/** The only wiring: a home folder, a store, and the ports to the world. */
export async function createRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { home, config } = options
  const { leaseMs = LIMITS.leaseMs, backlog = LIMITS.backlog } = config ?? {}
  const [clock, random] = [systemClock, systemRandomness]
  await ensureFolder(home)
  const env = options.environment ?? {}
  const secrets = openSecrets({ home, env, store: options.store, config })
  const warn = discreetly(options.warn ?? (() => {}))
  lookForBootsIn(homePaths(home).boots)
  const url = options.store ?? `sqlite:${homePaths(home).database}`
  const store = await openStore(url, { clock, random, codec: secrets })
  const watchers = new Set<(event: LiveEvent) => void>()
  const live = (event: LiveEvent) => {
    for (const watcher of watchers) watcher(event)
  }
  const crew = whenNeeded({ store, clock, random, warn, live, home, config, leaseMs, backlog, env })
  try {
    await refuseOlderBackup(home, store, random, options.acceptRestore === true)
    if (config !== undefined && options.agents !== 'when-needed') await crew.open()
  } catch (error) {
    await store.close()
    throw error
  }
  return {
    home,
    store,
    clock,
    random,
    leaseMs,
    backlog,
    agents: [...(config?.agents.keys() ?? [])],
    config,
    toolsOf: async (agent) => (await crew.open()).toolsOf(agent),
    toolOf: async (run, tool) => (await crew.open()).toolOf(run, tool),
    registerWorker: async (kind, own) => (await crew.open()).registerWorker(kind, own),
    workspaces: async () => {
      const { openWorkspaceDesk } = await import('./workers/workspace/desk.ts')
      const registerWorker = async () => (await crew.open()).registerWorker('command', { concurrency: 1 })
      return openWorkspaceDesk({ store, clock, home, env, registerWorker })
    },
    watch(listener) {
      watchers.add(listener)
      return () => watchers.delete(listener)
    },
    async close() {
      await crew.close()
      await rememberSeen(home, store).catch((error: unknown) => warn(describeError(error)))
      await store.close()
    },
  }
}

/** Its code is most of ours, and most commands only look at the store. */
function whenNeeded(options: CrewOptions) {
  let opening: Promise<Crew> | undefined
  return {
    open: () => (opening ??= import('./workers/crew.ts').then(({ openCrew }) => openCrew(options))),
    async close() {
      // Whoever wanted it was told why there is none.
      const opened = await opening?.catch(() => undefined)
      await opened?.close()
    },
  }
}
