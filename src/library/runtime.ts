import type { PolicyRule } from '../actions/policy.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { AgentDefinition, FunctionDefinition } from '../define/agent.ts'
import type { ModelPrice } from '../loop/ports.ts'
import { createRuntime as openRuntime } from '../runtime.ts'
import type { Runtime as OpenRuntime } from '../runtime.ts'
import type { ScheduleView as Schedule } from '../schedule/view.ts'
import { pendingMessages } from '../threads/message.ts'
import { viewMessage } from '../threads/view.ts'
import { tendRegularly } from '../workers/tend.ts'
import type { Worker } from '../workers/worker.ts'
import { answering } from './answer.ts'
import type { Answering } from './answer.ts'
import type { Call, NewCall } from './calls.ts'
import type { Approvals, Doubts } from './desk.ts'
import type { Doors } from './doors.ts'
import type { AgentEvent } from './event.ts'
import type { NewFollowUp, Schedules } from './schedules.ts'
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
      /** Told to OpenTelemetry; `content`: what was said and done, too. By default as the environment says. */
      readonly telemetry?: boolean | { readonly content?: boolean }
      readonly config?: never
    }
  | ({ readonly config: string } & {
      readonly [Key in 'agents' | 'policy' | 'prices' | 'capacity' | 'lease' | 'telemetry']?: never
    })

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
  const config = await configOf(options)
  const runtime = await openRuntime({
    home,
    warn,
    ...(config === undefined ? {} : { config }),
    environment: Object.fromEntries(
      Object.entries(process.env).flatMap(([key, text]) => (text === undefined ? [] : [[key, text]])),
    ),
    ...(store === undefined ? {} : { store }),
  })
  return new EmbeddedRuntime(runtime, warn)
}

/** What reads a configuration is loaded when there is one. */
async function configOf(options: RuntimeOptions): Promise<LoadedConfig | undefined> {
  const { agents, policy, prices, config, capacity, lease, telemetry } = options
  if (config !== undefined) return (await import('../config/load.ts')).loadConfig(config)
  const more = Object.entries({ policy, prices, capacity, lease, telemetry }).filter(([, value]) => value !== undefined)
  if (agents.length === 0 && more.length === 0) return undefined
  const names = agents.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined)
    throw new HoldfastError('usage/agent', `there are two agents "${twice}"`, { remedy: 'rename one of them' })
  const named = Object.fromEntries(agents.map((agent) => [agent.name, agent]))
  const { readConfig } = await import('../config/config.ts')
  const read = readConfig({ agents: named, ...Object.fromEntries(more) }, 'createRuntime')
  return { ...read, path: 'createRuntime', folder: process.cwd() }
}

class EmbeddedRuntime implements Runtime {
  readonly #runtime: OpenRuntime
  readonly #warn: (message: string) => void
  readonly approvals: Approvals
  readonly doubts: Doubts
  readonly schedules: Schedules
  #opening: Promise<Doors> | undefined
  #doors: Doors | undefined
  #worker: Promise<Worker> | undefined
  #stopTending = () => {}
  #closed: Promise<void> | undefined

  constructor(runtime: OpenRuntime, warn: (message: string) => void) {
    this.#runtime = runtime
    this.#warn = warn
    const behind = async <Door extends 'approvals' | 'doubts' | 'schedules'>(door: Door) => (await this.#open())[door]
    this.approvals = later(APPROVALS, () => behind('approvals'))
    this.doubts = later(DOUBTS, () => behind('doubts'))
    this.schedules = later(SCHEDULES, () => behind('schedules'))
  }

  /** Most of the library, and who only looks at the store needs none of it. */
  #open(): Promise<Doors> {
    this.#opening ??= import('./doors.ts').then(({ openDoors }) => (this.#doors = openDoors(this.#runtime)))
    return this.#opening
  }

  async start({
    workers = LIMITS.embeddedWorkers,
    calls = LIMITS.callsAtWork,
  }: { readonly workers?: number; readonly calls?: number } = {}): Promise<void> {
    this.#worker ??= this.#start(workers, calls).catch((error: unknown) => {
      this.#worker = undefined
      throw error
    })
    await this.#worker
  }

  async #start(workers: number, calls: number): Promise<Worker> {
    const doors = await this.#open()
    const onEnd = doors.calls.hear.bind(doors.calls)
    // Not as a daemon: several programs may share a home folder, and each has agents that the others do not know.
    const worker = await this.#runtime.registerWorker('command', { concurrency: workers, calls, onEnd })
    this.#stopTending = tendRegularly(this.#runtime, worker)
    await worker.start()
    doors.calls.workHere(worker.calls)
    return worker
  }

  call(call: NewCall): Promise<Call> {
    return this.#doors === undefined ? this.#open().then(({ calls }) => calls.call(call)) : this.#doors.calls.call(call)
  }

  async callAll(calls: readonly NewCall[]): Promise<Call[]> {
    return (await this.#open()).calls.callAll(calls)
  }

  async send(message: NewMessage): Promise<Sent> {
    return withoutSeq(await (await this.#open()).send(message))
  }

  ask({ signal, ...message }: NewMessage & { readonly signal?: AbortSignal }): Answering {
    const sending = this.#ask(message, signal)
    const cancel = () => void this.#cancel(sending, signal!).catch((error: unknown) => this.#warn(describeError(error)))
    signal?.addEventListener('abort', cancel, { once: true })
    const forget = () => signal?.removeEventListener('abort', cancel)
    return answering((stopped) => this.#follow(sending, stopped), sending, signal, forget)
  }

  async *#follow(sending: Promise<SentMessage>, stopped: AbortSignal): AsyncGenerator<AgentEvent> {
    yield* (await this.#open()).follow(sending, stopped)
  }

  async #cancel(sending: Promise<SentMessage>, signal: AbortSignal): Promise<void> {
    await (await this.#open()).cancelWith(sending, signal)
  }

  async #ask(message: NewMessage, signal: AbortSignal | undefined): Promise<SentMessage> {
    signal?.throwIfAborted()
    const doors = await this.#open()
    if (this.#worker === undefined && !(await doors.hasDaemon()))
      this.#warn('nobody executes runs: this runtime was not started, and no daemon is running')
    return doors.send(message)
  }

  async inbox(threadId: string): Promise<MessageView[]> {
    return (await this.#runtime.store.read(pendingMessages, threadId as ThreadId, LIMITS.page)).map(viewMessage)
  }

  async followUp(asked: NewFollowUp): Promise<Schedule> {
    return (await this.#open()).followUp(asked)
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
      const doors = await this.#opening?.catch(() => undefined)
      doors?.calls.close()
      await this.#runtime.close()
    }
  }
}

/** The same, loaded when one of its verbs is used. */
function later<T extends object>(verbs: Readonly<Record<keyof T, true>>, load: () => Promise<T>): T {
  const verb =
    (name: string) =>
    async (...args: readonly unknown[]) =>
      ((await load()) as Record<string, (...args: readonly unknown[]) => unknown>)[name]!(...args)
  return Object.fromEntries(Object.keys(verbs).map((name) => [name, verb(name)])) as T
}

const APPROVALS: Readonly<Record<keyof Approvals, true>> = {
  list: true,
  get: true,
  approve: true,
  skip: true,
  deny: true,
  edit: true,
  ruleFor: true,
  always: true,
}

const DOUBTS: Readonly<Record<keyof Doubts, true>> = { list: true, get: true, resolve: true }

const SCHEDULES: Readonly<Record<keyof Schedules, true>> = {
  add: true,
  list: true,
  get: true,
  pause: true,
  resume: true,
  runNow: true,
  remove: true,
  occurrences: true,
}

const withoutSeq = ({ messageId, threadId, runId }: SentMessage): Sent => ({ messageId, threadId, runId })
