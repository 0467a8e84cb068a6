import { parseDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { newRunId } from '../base/ids.ts'
import type { AttemptId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { callAll, callOne, openCalls, waitingCalls } from '../runs/call.ts'
import { cancelRun } from '../runs/cancel.ts'
import type { Called, NewCall as StoredCall } from '../runs/call.ts'
import { endOf } from '../runs/finish.ts'
import type { Outcome } from '../runs/finish.ts'
import { endedRuns } from '../runs/run.ts'
import type { Runtime } from '../runtime.ts'
import { Lookout } from '../store/lookout.ts'
import { asJson } from '../workers/functions/judge-step.ts'
import type { Worker } from '../workers/worker.ts'

export interface NewCall {
  /** The function's name. */
  readonly function: string
  /** What it gets, as JSON. */
  readonly input?: unknown
  /** The same key is the same call: a program that was killed calls again, and gets the result of the first. */
  readonly key?: string
  readonly priority?: number
  /** A thread of its own: what is sent there while it is at work is shown to the model of its `durable` loop. */
  readonly threadId?: string
  /** How long it may be at work, as `30s`; then it is told to stop, and fails. Waiting for a person does not count. */
  readonly timeout?: string
}

export interface Call {
  readonly runId: string
  /** What the function returned. Rejects when the run did not succeed; waits while it waits for a person. */
  result(): Promise<unknown>
  /** Resolves when the request is on disk: from then on it ends as cancelled. What has happened stays so. */
  cancel(reason?: string): Promise<void>
}

interface Waiter {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Calls functions, and hears of their ends: of those here at once, of the others when their end is on disk. */
export class CallDesk {
  readonly #runtime: Runtime
  readonly #opened = new Map<string, Promise<unknown>>()
  /** Functions whose thread is known to be there: nobody waits for it again. */
  readonly #open = new Set<string>()
  readonly #waiters = new Map<RunId, Waiter[]>()
  /** The last ends that were heard of, for whoever asks a moment later. */
  readonly #ended = new Map<RunId, Outcome>()
  #room = 0
  /** Waiters that are still to be looked for. */
  #unlooked = 0
  #here: Worker['calls'] | undefined
  #lookout: Lookout | undefined
  #stopCounting = () => {}
  #disarm: (() => void) | undefined
  #closed: HoldfastError | undefined

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  async call(call: NewCall): Promise<Call> {
    await this.#prepare([call])
    const stored = this.#storedAs(call)
    const here = this.#here
    const place = here?.reserve(call.function)
    if (here === undefined || place === undefined) return this.#handle(await this.#runtime.store.apply(callOne, stored))
    const called = await here.callHere(stored, place)
    return called.kind === 'claimed' ? this.#callOf(stored.id, place.attemptId) : this.#handle(called)
  }

  /** From now on what is called here can be carried out here at once. */
  workHere(here: Worker['calls']): void {
    this.#here = here
  }

  async callAll(calls: readonly NewCall[]): Promise<Call[]> {
    await this.#prepare(calls)
    const stored = calls.map((call) => this.#storedAs(call))
    const commits: Promise<Called[]>[] = []
    for (let next = 0; next < stored.length; next += LIMITS.callsTogether)
      commits.push(this.#runtime.store.apply(callAll, stored.slice(next, next + LIMITS.callsTogether)))
    return (await Promise.all(commits)).flat().map((called) => this.#handle(called))
  }

  close(): void {
    void this.#lookout?.stop()
    this.#stopCounting()
    this.#disarm?.()
    const error = new HoldfastError('runtime/closed', 'the runtime was closed before the call had ended', {
      remedy: 'open it again and call with the same key: the call goes on, and its result is kept',
    })
    this.#closed = error
    for (const waiters of this.#waiters.values()) for (const { reject } of waiters) reject(error)
    this.#waiters.clear()
  }

  async #prepare(calls: readonly NewCall[]): Promise<void> {
    for (const { function: name, threadId } of calls)
      if (threadId !== undefined) await this.#openThread(name, threadId as ThreadId)
      else if (!this.#open.has(name)) await this.#openCallsOf(name)
    if (this.#room < calls.length) await this.#makeRoom(calls.length)
    this.#room -= calls.length
  }

  #storedAs({ function: agent, input = null, key, priority, timeout, threadId }: NewCall): StoredCall {
    const call = { id: newRunId(this.#runtime.random), agent, input: inputOf(agent, input) }
    if (key === undefined && priority === undefined && timeout === undefined && threadId === undefined) return call
    return {
      ...call,
      ...(timeout === undefined ? {} : { timeoutMs: parseDuration(timeout) }),
      ...(key === undefined ? {} : { key }),
      ...(priority === undefined ? {} : { priority }),
      ...(threadId === undefined ? {} : { threadId: threadId as ThreadId }),
    }
  }

  /** Once; but a database that was not there is asked again by the next call. */
  async #openCallsOf(name: string): Promise<void> {
    if (!this.#opened.has(name)) this.#opened.set(name, this.#runtime.store.apply(openCalls, name))
    try {
      await this.#opened.get(name)
      this.#open.add(name)
    } catch (error) {
      this.#opened.delete(name)
      throw error
    }
  }

  async #openThread(name: string, threadId: ThreadId): Promise<void> {
    const owner = await this.#runtime.store.apply(openCalls, name, threadId)
    if (owner === name) return
    throw new HoldfastError('usage/agent', `thread "${threadId}" belongs to the agent "${owner}"`, {
      remedy: 'call the function on another thread',
    })
  }

  /** Counting what waits costs as much as there is of it: so it is done once for many, and the limit is about so much. */
  async #makeRoom(calls: number): Promise<void> {
    const { store, backlog } = this.#runtime
    const { count } = await store.read(waitingCalls, backlog)
    this.#room = Math.floor((backlog - count) / 2)
    if (backlog - count < calls)
      throw new HoldfastError('capacity/backlog-full', `${count} calls are waiting already`, {
        remedy: 'wait until some have ended, or raise capacity.backlog',
      })
  }

  #handle(called: Called): Call {
    if (called.kind === 'conflict')
      throw new HoldfastError('usage/key', `the key belongs to run ${called.runId}, which has another input`, {
        remedy: 'use a key of its own for each call',
      })
    return this.#callOf(called.runId)
  }

  /** `here`: as long as that attempt is at work here, its end is heard of. */
  #callOf(runId: RunId, here?: AttemptId): Call {
    const cancel = async (reason?: string) => {
      const why = reason === undefined ? {} : { reason }
      await this.#runtime.store.apply(cancelRun, runId, { by: 'its caller', ...why })
    }
    return { runId, result: () => this.#result(runId, here), cancel }
  }

  #result(runId: RunId, here: AttemptId | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const known = this.#ended.get(runId)
      if (known !== undefined) return answer({ resolve, reject }, runId, known)
      if (this.#closed !== undefined) return reject(this.#closed)
      const waiters = this.#waiters.get(runId)
      if (waiters === undefined) this.#waiters.set(runId, [{ resolve, reject }])
      else waiters.push({ resolve, reject })
      this.#lookout ??= this.#listen()
      if (this.#disarm === undefined) this.#lookWithin(LIMITS.earCheckMs)
      if (here !== undefined && this.#here?.has(here) === true) return
      this.#lookForAll()
    })
  }

  /** A call ended here, and its end is on disk. */
  hear(runId: RunId, outcome: Outcome): void {
    const waiters = this.#waiters.get(runId)
    if (waiters === undefined) return this.#remember(runId, outcome)
    this.#waiters.delete(runId)
    for (const waiter of waiters) answer(waiter, runId, outcome)
  }

  #remember(runId: RunId, outcome: Outcome): void {
    this.#ended.set(runId, outcome)
    if (this.#ended.size > LIMITS.callsTogether) this.#ended.delete(this.#ended.keys().next().value!)
  }

  /**
   * Somebody else may carry it out, or take it over: then its end is found in the store, after a commit of another process. Of
   * our own only those that end a run otherwise, as a cancel does: the usual end was heard of.
   */
  #listen(): Lookout {
    const { store, clock } = this.#runtime
    const look = () => this.#look().catch(() => this.#lookWithin(LIMITS.changePollMs))
    this.#stopCounting = store.onChange((topics) => {
      if (topics?.has('run.finished') !== false) this.#lookForAll()
    })
    return new Lookout({ store, clock, everyMs: LIMITS.callLookMs, look })
  }

  /** A hint can get lost, and a look can fail: as long as anybody waits, there is another one after it. */
  #lookWithin(ms: number): void {
    this.#disarm?.()
    this.#disarm = undefined
    if (this.#waiters.size === 0) return
    this.#disarm = this.#runtime.clock.after(ms, () => {
      this.#lookWithin(LIMITS.earCheckMs)
      this.#lookForAll()
    })
  }

  /** Whoever came last is behind all the others. */
  #lookForAll(): void {
    if (this.#waiters.size === 0) return
    this.#unlooked = this.#waiters.size
    this.#lookout?.soon()
  }

  async #look(): Promise<void> {
    if (this.#waiters.size === 0) return
    const some = [...this.#waiters].slice(0, LIMITS.callsTogether)
    this.#unlooked -= some.length
    // To the end of the row: some may wait for a person, and the others are not to wait behind them.
    for (const [id, waiters] of some) if (this.#waiters.delete(id)) this.#waiters.set(id, waiters)
    const ids = some.map(([id]) => id)
    for (const run of await this.#runtime.store.read(endedRuns, ids)) this.hear(run.id, endOf(run))
    if (this.#unlooked > 0) this.#lookout?.soon()
  }
}

function inputOf(agent: string, input: unknown): string {
  const kept = asJson(input)
  if (kept.kind === 'json' && kept.text !== null) return kept.text
  const trouble = kept.kind === 'json' ? 'it is nothing' : kept.trouble
  throw new HoldfastError('usage/input', `${agent} cannot be called with this input: ${trouble}`, {
    remedy: 'pass plain data: strings, numbers, lists and objects of them',
  })
}

function answer({ resolve, reject }: Waiter, runId: RunId, outcome: Outcome): void {
  if (outcome.state === 'succeeded') return resolve(outcome.result)
  const why = outcome.state === 'failed' ? `failed: ${outcome.error}` : 'was cancelled'
  const code = outcome.state === 'failed' ? `run/${outcome.code}` : 'run/cancelled'
  reject(new HoldfastError(code, `run ${runId} ${why}`, { remedy: `holdfast runs show ${runId} has its steps` }))
}
