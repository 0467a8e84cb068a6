import type { PolicyRule } from '../actions/policy.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { readConfig } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { AgentDefinition, FunctionDefinition } from '../define/agent.ts'
import type { ModelPrice } from '../loop/ports.ts'
import { judgeProcess } from '../processes/identity.ts'
import { liveDaemons } from '../runs/worker.ts'
import { createRuntime as openRuntime } from '../runtime.ts'
import type { Runtime as OpenRuntime } from '../runtime.ts'
import type { ScheduleView as Schedule } from '../schedule/view.ts'
import { pendingMessages } from '../threads/message.ts'
import { viewMessage } from '../threads/view.ts'
import { tendRegularly } from '../workers/tend.ts'
import type { Worker } from '../workers/worker.ts'
import { answering, cancelWith } from './answer.ts'
import type { Answering } from './answer.ts'
import { CallDesk } from './calls.ts'
import type { Call, NewCall } from './calls.ts'
import { openApprovals, openDoubts } from './desk.ts'
import type { Approvals, Doubts } from './desk.ts'
import { followUp, openSchedules } from './schedules.ts'
import type { NewFollowUp, Schedules } from './schedules.ts'
import { send } from './send.ts'
import type { NewMessage, SentMessage } from './send.ts'

type MessageView = ReturnType<typeof viewMessage>

/** Which agents: those of this program, or those of a configuration file. */
type Agents =
  | {
      readonly agents: readonly (AgentDefinition | FunctionDefinition)[]
      /** As in a configuration file. */
      readonly policy?: readonly PolicyRule[]
      /** Of models, by their names, in US dollars for a million tokens; they come before the list prices that are built in. */
      readonly prices?: Readonly<Record<string, ModelPrice>>
      /** How much at once, and how much may wait; as in a configuration file. */
      readonly capacity?: Readonly<Record<string, unknown>>
      /** After how long a worker that says nothing is taken for lost, as `15s`. */
      readonly lease?: string
      readonly config?: never
    }
  | ({ readonly config: string } & { readonly [Key in 'agents' | 'policy' | 'prices' | 'capacity' | 'lease']?: never })

export type RuntimeOptions = Agents & {
  /** The folder for everything outside the database, and by default for the database too. */
  readonly home: string
  /** `sqlite:PATH` or `postgres://…`; by default a file in the home folder. */
  readonly store?: string
  /** Hears of what went wrong in the background and will be tried again; by default they are warnings of the process. */
  readonly warn?: (message: string) => void
}

export interface Runtime {
  /** Makes this process a worker: it takes up what was cut off, then what is sent, until it is closed. */
  start(options?: { readonly workers?: number; readonly calls?: number }): Promise<void>
  /** Calls a function. Resolves when the call is on disk; whoever has the function carries it out. */
  call(call: NewCall): Promise<Call>
  /** The same for many, in few commits. */
  callAll(calls: readonly NewCall[]): Promise<Call[]>
  /** Resolves when the message is on disk. */
  send(message: NewMessage): Promise<Sent>
  /** Sends, and follows what comes of it. The signal cancels the run, whoever carries it out. */
  ask(message: NewMessage & { readonly signal?: AbortSignal }): Answering
  /** What waits in a thread's inbox, the oldest first: a page of it. */
  inbox(threadId: string): Promise<MessageView[]>
  /** What waits for a person's yes or no. */
  readonly approvals: Approvals
  /** Writes that were cut off: they may or may not have happened. */
  readonly doubts: Doubts
  /** What comes by itself. Somebody must be there for it: this runtime, started, or a daemon. */
  readonly schedules: Schedules
  /** A message to a thread, after a delay or at an instant. */
  followUp(followUp: NewFollowUp): Promise<Schedule>
  /** Gives what is under way a moment to end; what does not is taken up by the next worker. */
  close(): Promise<void>
}

export type Sent = Omit<SentMessage, 'afterSeq'>

/** Opens a runtime for the agents of this program. It executes nothing before it is started. */
export async function createRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { home, store, warn = (message: string) => process.emitWarning(message, 'HoldfastWarning') } = options
  const runtime = await openRuntime({
    home,
    warn,
    config: await configOf(options),
    environment: Object.fromEntries(
      Object.entries(process.env).flatMap(([key, text]) => (text === undefined ? [] : [[key, text]])),
    ),
    ...(store === undefined ? {} : { store }),
  })
  return new EmbeddedRuntime(runtime, warn)
}

async function configOf({ agents, policy, prices, config, capacity, lease }: RuntimeOptions): Promise<LoadedConfig> {
  if (config !== undefined) return loadConfig(config)
  const names = agents.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined)
    throw new HoldfastError('usage/agent', `there are two agents "${twice}"`, { remedy: 'rename one of them' })
  const named = Object.fromEntries(agents.map((agent) => [agent.name, agent]))
  const limits = { ...(capacity === undefined ? {} : { capacity }), ...(lease === undefined ? {} : { lease }) }
  const read = readConfig({ agents: named, policy: policy ?? [], prices: prices ?? {}, ...limits }, 'createRuntime')
  return { ...read, path: 'createRuntime', folder: process.cwd() }
}

class EmbeddedRuntime implements Runtime {
  readonly #runtime: OpenRuntime
  readonly #warn: (message: string) => void
  readonly approvals: Approvals
  readonly doubts: Doubts
  readonly schedules: Schedules
  readonly #calls: CallDesk
  #worker: Promise<Worker> | undefined
  #stopTending = () => {}
  #closed: Promise<void> | undefined

  constructor(runtime: OpenRuntime, warn: (message: string) => void) {
    this.#runtime = runtime
    this.#warn = warn
    this.approvals = openApprovals(runtime)
    this.doubts = openDoubts(runtime)
    this.schedules = openSchedules(runtime)
    this.#calls = new CallDesk(runtime)
  }

  async start({
    workers = LIMITS.embeddedWorkers,
    calls = LIMITS.callsAtWork,
  }: { readonly workers?: number; readonly calls?: number } = {}): Promise<void> {
    // Not as a daemon: several programs may share a home folder, and each has agents that the others do not know.
    this.#worker ??= this.#runtime
      .registerWorker('command', {
        concurrency: workers,
        calls,
        onEnd: (runId, outcome) => this.#calls.hear(runId, outcome),
      })
      .then(async (worker) => {
        this.#stopTending = tendRegularly(this.#runtime, worker)
        await worker.start()
        this.#calls.workHere(worker.calls)
        return worker
      })
    await this.#worker
  }

  call(call: NewCall): Promise<Call> {
    return this.#calls.call(call)
  }

  callAll(calls: readonly NewCall[]): Promise<Call[]> {
    return this.#calls.callAll(calls)
  }

  async send(message: NewMessage): Promise<Sent> {
    return withoutSeq(await send(this.#runtime, message))
  }

  ask({ signal, ...message }: NewMessage & { readonly signal?: AbortSignal }): Answering {
    const sending = this.#ask(message, signal)
    const cancel = () =>
      void cancelWith(this.#runtime, sending, signal!).catch((error: unknown) => this.#warn(describeError(error)))
    signal?.addEventListener('abort', cancel, { once: true })
    const forget = () => signal?.removeEventListener('abort', cancel)
    return answering(this.#runtime, sending, signal, forget)
  }

  async #ask(message: NewMessage, signal: AbortSignal | undefined): Promise<SentMessage> {
    signal?.throwIfAborted()
    if (this.#worker === undefined && !(await hasDaemon(this.#runtime)))
      this.#warn('nobody executes runs: this runtime was not started, and no daemon is running')
    return send(this.#runtime, message)
  }

  async inbox(threadId: string): Promise<MessageView[]> {
    return (await this.#runtime.store.read(pendingMessages, threadId as ThreadId, LIMITS.page)).map(viewMessage)
  }

  followUp(asked: NewFollowUp): Promise<Schedule> {
    return followUp(this.#runtime, asked)
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    try {
      const worker = await this.#worker
      this.#stopTending()
      await worker?.drain(LIMITS.drainMs)
    } finally {
      this.#calls.close()
      await this.#runtime.close()
    }
  }
}

const withoutSeq = ({ messageId, threadId, runId }: SentMessage): Sent => ({ messageId, threadId, runId })

async function hasDaemon({ store }: OpenRuntime): Promise<boolean> {
  const daemons = await store.read(liveDaemons, null)
  return daemons.some(({ identity }) => judgeProcess(identity) !== 'dead')
}
