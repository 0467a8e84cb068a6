import type { Clock } from '../../base/clock.ts'
import { describeError } from '../../base/errors.ts'
import type { Randomness, RunId, WorkerId } from '../../base/ids.ts'
import { thisPlace } from '../../processes/identity.ts'
import type { Claim } from '../../runs/claim.ts'
import type { Outcome } from '../../runs/finish.ts'
import type { Store } from '../../store/store.ts'
import { sweepableOn, unsettledOn } from '../../workspace/settle.ts'
import type { WorkspaceRequest } from '../../workspace/workspace.ts'
import type { Executor } from '../execute.ts'
import { homePaths } from '../home.ts'
import { doEach } from '../tend-inbox.ts'
import type { Job } from '../tend-inbox.ts'
import type { Opened } from './open.ts'
import type { WorkspacePoint, WorkspacePorts } from './ports.ts'

/** What carrying out a run does with its workspace. */
export interface RunWorkspaces {
  open(executor: Executor, claim: Claim, request: WorkspaceRequest | undefined): Promise<Opened>
  /** How a run that reported success may end; undefined: it is another worker's. */
  conclude(executor: Executor, claim: Claim, outcome: Outcome): Promise<Outcome | undefined>
  /** Keeps what is there: the run is about to wait. */
  checkpoint(executor: Executor, claim: Claim): Promise<void>
  /** Does what the end of the run decided, or what a person asked for. */
  settle(runId: RunId): Promise<void>
}

export interface WorkspacesOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly home: string
  readonly leaseMs: number
  readonly graceMs: number
  readonly warn: (message: string) => void
  readonly workerId: WorkerId
  /** The variables of this process: git finds itself and the user's settings by them, checks get the harmless ones. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly point?: (name: WorkspacePoint) => void | Promise<void>
  /** Takes over runs that lost their worker: they may hold what others wait for. */
  readonly recover: () => Promise<unknown>
}

/** The files of runs, as a worker sees them. What does the work is loaded when there is some: most runs have no workspace. */
export class Workspaces implements RunWorkspaces {
  readonly #ports: WorkspacePorts

  constructor(options: WorkspacesOptions) {
    const { home, clock, env, point, recover } = options
    const { workspaces: folder, codeCache, gitRooms: rooms } = homePaths(home)
    this.#ports = {
      ...options,
      folder,
      codeCache,
      host: thisPlace().host,
      git: { clock, env, rooms, ...(point === undefined ? {} : { point }) },
      settling: new Map(),
      lookAfterOthers: (repo) => doEach(this.#others(recover, repo), options.warn),
    }
  }

  /** Whatever becomes of it: whoever asks goes on with its own. */
  #others(recover: () => Promise<unknown>, repo: string): Job[] {
    return [
      { what: 'recovery', work: recover },
      { what: 'workspaces', work: () => this.settleAll(repo) },
    ]
  }

  async open(executor: Executor, claim: Claim, request: WorkspaceRequest | undefined): Promise<Opened> {
    const { openFor } = await import('./open.ts')
    return openFor(this.#ports, executor, claim, request)
  }

  async conclude(executor: Executor, claim: Claim, outcome: Outcome): Promise<Outcome | undefined> {
    const { concludeWork } = await import('./conclude.ts')
    return concludeWork(this.#ports, executor, claim, outcome)
  }

  async checkpoint(executor: Executor, claim: Claim): Promise<void> {
    const { checkpoint } = await import('./conclude.ts')
    await checkpoint(this.#ports, executor, claim)
  }

  async settle(runId: RunId): Promise<void> {
    const { settleWorkspace, untilSettled } = await import('./settle.ts')
    await this.#ports.point?.('workspace/ended')
    await settleWorkspace(this.#ports, runId)
    await untilSettled(this.#ports, runId)
  }

  /** This worker stops, and somebody goes on with these runs, perhaps in another boot of the machine. Never throws. */
  async letGo(runs: readonly RunId[]): Promise<void> {
    for (const runId of runs) {
      try {
        await (await import('./sound.ts')).letGoOf(this.#ports, runId)
      } catch (error) {
        this.#ports.warn(`a power loss would end ${runId}: ${describeError(error)}`)
      }
    }
  }

  /** What others on this machine left undone. */
  async settleAll(repo?: string): Promise<void> {
    const { store, host } = this.#ports
    if ((await store.read(unsettledOn, host, 1)).length === 0) return
    const { settleAll } = await import('./settle.ts')
    await settleAll(this.#ports, repo)
  }

  /** What others left behind, at the start of a process that stays. */
  async begin(): Promise<void> {
    await doEach([{ what: 'old workspaces', work: () => this.sweepFolders() }], this.#ports.warn)
    await this.tend()
  }

  /** Once a tick. Never throws, it is tried again anyway. */
  async tend(): Promise<void> {
    const jobs: Job[] = [
      { what: 'workspaces', work: () => this.settleAll() },
      { what: 'workspaces whose time is over', work: () => this.sweep() },
    ]
    await doEach(jobs, this.#ports.warn)
  }

  /** When nothing is being settled here any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#ports.settling.values())
  }

  /** What nobody can bring back any more. */
  async sweep(): Promise<void> {
    const { store, host } = this.#ports
    if ((await store.read(sweepableOn, host, 1)).length === 0) return
    const { sweepWorkspaces } = await import('./sweep.ts')
    await sweepWorkspaces(this.#ports)
  }

  /** Folders, and refs, that somebody had no time to remove. */
  async sweepFolders(): Promise<void> {
    const { sweepFolders, sweepRepositories } = await import('./sweep.ts')
    await sweepFolders(this.#ports)
    await sweepRepositories(this.#ports)
  }
}
