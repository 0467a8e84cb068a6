import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { onTestFinished } from 'vitest'

import type { viewAction } from '../../src/actions/view.ts'
import type { Script } from '../../src/model/script.ts'
import { systemClock } from '../../src/base/clock.ts'
import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { MessageId, RunId, ThreadId } from '../../src/base/ids.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { readWholeRun, viewWholeRun } from '../../src/runs/view.ts'
import type { RunView } from '../../src/runs/view.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { homePaths } from '../../src/workers/home.ts'
import { Installation, until } from './holdfast.ts'
import type { Running } from './holdfast.ts'

export type ActionView = ReturnType<typeof viewAction>
export type WholeRun = RunView & {
  readonly actions: readonly ActionView[]
  readonly attempts: readonly { readonly workerId: string }[]
  readonly steps: readonly { readonly kind: string }[]
}

export interface Sent {
  readonly messageId: MessageId
  readonly runId: RunId
  readonly threadId: ThreadId
}

export interface AgentSetting {
  /** What its scripted model says; or `model` names another one. */
  readonly replies?: Script['replies']
  readonly model?: string
  readonly tools?: readonly string[]
  /** A program that is an agent of its own, instead of a model. */
  readonly command?: readonly string[]
  /** Whatever else an agent can have. */
  readonly [more: string]: unknown
}

export interface AgentOptions {
  readonly store?: string
  /** For every process of it: keys and addresses of providers. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Settings {
  readonly agents: Readonly<Record<string, AgentSetting>>
  readonly [more: string]: unknown
}

/** A tool about which a person is asked. */
export const TELL = {
  effect: 'write',
  description: 'Tells somebody',
  input: { type: 'object', properties: { whom: { type: 'string' } } },
  command: ['cat'],
}
export const POLICY = [{ tool: 'tell', decision: 'ask' }, { decision: 'allow' }]

/** An installation with agents, as its user configured them. */
export class AgentInstallation extends Installation {
  readonly folder: string
  readonly storeUrl: string | undefined

  readonly #settings: Settings
  readonly #env: Readonly<Record<string, string>>

  constructor(settings: Settings, options: AgentOptions = {}) {
    super(options)
    this.#settings = settings
    this.#env = options.env ?? {}
    this.storeUrl = options.store
    this.folder = dirname(this.configuration)
    this.configure(settings)
  }

  /** Unless a test says otherwise, everything is allowed and a model is told what nobody knows: no person is there. */
  configure({ agents, policy = [{ decision: 'allow' }], ...more }: Settings): void {
    for (const [name, { replies }] of Object.entries(agents)) {
      if (replies !== undefined) writeFileSync(join(this.folder, `${name}.json`), JSON.stringify({ replies }))
    }
    const written = Object.entries(agents).map(([name, setting]) => {
      const agent = { ...setting, replies: undefined }
      const scripted = { model: `scripted:./${name}.json`, tools: [], doubt: 'tell' }
      return [name, agent.command === undefined ? { ...scripted, ...agent } : agent]
    })
    writeFileSync(this.configuration, JSON.stringify({ agents: Object.fromEntries(written), policy, ...more }))
  }

  /** Another one on the same store, as on another machine. */
  beside(): AgentInstallation {
    return new AgentInstallation(this.#settings, { store: this.#storeUrl(), env: this.#env })
  }

  override start(args: readonly string[], env: Record<string, string> = {}): Running {
    return super.start(args, { ...this.#env, ...env })
  }

  async daemon(workers = 8): Promise<Running> {
    const daemon = this.start(['up', '--workers', String(workers)])
    await daemon.said('holdfast: up:')
    return daemon
  }

  /** Puts a message into a new thread of the agent, from beside: where the door is not what a test is about. */
  async send(agent: string, options: { readonly timeoutMs?: number } = {}): Promise<Sent> {
    const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: newThreadId(random) }
    const sending = { ...ids, ...options, agent, text: 'go', key: ids.messageId }
    await (await this.store()).apply(sendMessage, sending)
    return ids
  }

  /** Waits for the answer, whoever carries it out. */
  async ask(agent: string, ...flags: readonly string[]): Promise<RunView> {
    return this.json<RunView>(['send', '--agent', agent, '--wait', ...flags, 'go'])
  }

  #store: Promise<Store> | undefined

  /** A look from beside: reading through the command line costs a process each time. */
  async whole(runId: string): Promise<WholeRun> {
    const found = await (await this.store()).read(readWholeRun, runId as RunId)
    if (found === undefined) throw new Error(`there is no run ${runId}`)
    return viewWholeRun(found) as WholeRun
  }

  /** Of the agent's runs the newest; it may not be there yet. */
  async runOf(agent: string): Promise<string | undefined> {
    const runs = await (await this.store()).read(listRuns, { limit: 100 })
    return runs.find((run) => run.agent === agent)?.id
  }

  store(): Promise<Store> {
    return (this.#store ??= this.#open())
  }

  readonly #storeUrl = () => this.storeUrl ?? `sqlite:${homePaths(this.home).database}`

  async #open(): Promise<Store> {
    mkdirSync(this.home, { recursive: true })
    const store = await openStore(this.#storeUrl(), { clock: systemClock, random })
    onTestFinished(() => store.close())
    return store
  }

  /** The run in one of these states, with its actions. */
  is(runId: string, ...states: readonly string[]): Promise<WholeRun> {
    return until(`${runId} is ${states.join(' or ')}`, async () => {
      const run = await this.whole(runId)
      return states.includes(run.state) ? run : undefined
    })
  }

  ended = (runId: string): Promise<WholeRun> => this.is(runId, 'succeeded', 'failed', 'cancelled')
}
