import type { PolicyRule } from '../../actions/policy.ts'
import { afterThisTurn } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/files.ts'
import { formatDuration } from '../../base/duration.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import { newAttemptId } from '../../base/ids.ts'
import type { AttemptId, Randomness, RunId, WorkerId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { FunctionBody, FunctionRun } from '../../define/function.ts'
import { insideOf } from '../../define/inside.ts'
import type { LoopEvent } from '../../loop/loop.ts'
import type { AskModel, Tool } from '../../loop/ports.ts'
import type { Prices } from '../../model/prices.ts'
import { callHere, claimCalls, claimedHere, refOfCall } from '../../runs/call.ts'
import type { CallPlace, CalledHere, ClaimedCall, NewCall } from '../../runs/call.ts'
import { isLimited } from '../../runs/capacity.ts'
import type { CapacityLimits } from '../../runs/capacity.ts'
import type { AttemptRef } from '../../runs/attempt.ts'
import type { Claim } from '../../runs/claim.ts'
import { finishCall, parkCall } from '../../runs/finish-call.ts'
import type { Wait } from '../../runs/finish-call.ts'
import { endOf, keepLateResult } from '../../runs/finish.ts'
import type { Outcome } from '../../runs/finish.ts'
import { isTerminal } from '../../runs/run.ts'
import { stepsOf } from '../../runs/step.ts'
import type { Store } from '../../store/store.ts'
import { finish, refOf, untilStored } from '../execute.ts'
import type { Executor } from '../execute.ts'
import { RecordedRun } from './function-run.ts'
import type { Halt } from './halt.ts'
import { asJson } from './judge-step.ts'
import { KnownSteps } from './known-steps.ts'
import { Opening } from './opening.ts'
import { Stop } from './stop.ts'
import type { StopReason } from './stop.ts'
import { endRivals } from '../rivals.ts'
import { Unbegun } from './unbegun.ts'

/** An agent that is a function of this program. */
export interface FunctionAgent {
  readonly name: string
  readonly body: FunctionBody
  /** For the calls of a loop inside of it: the rules of the configuration, how long a person has to answer, and what models cost. */
  readonly policy?: readonly PolicyRule[]
  readonly approvalMs?: number
  readonly prices?: Prices
  /** Who watches that loop. */
  readonly watch?: LoopWatch
}

/** What a loop inside of a function asks and uses, told to somebody. */
export interface LoopWatch {
  readonly ask: (agent: string, model: string, ask: AskModel, runId: RunId) => AskModel
  readonly tools: (tools: ReadonlyMap<string, Tool>) => ReadonlyMap<string, Tool>
  readonly heard: (event: LoopEvent) => void
}

export interface CallsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly functions: ReadonlyMap<string, FunctionAgent>
  /** How many functions are at work at once. */
  readonly concurrency: number
  /** How many of them, over all workers. */
  readonly limits: CapacityLimits
  readonly executor: Executor
  /** A call that was at work here has ended, and its end is on disk. */
  readonly onEnd: (runId: RunId, outcome: Outcome) => void
  /** It could not be carried out, and its claim is to be let go of. */
  readonly onBroken: (call: ClaimedCall, error: string) => void
}

/**
 * Each asks for its share of the places. With a server, one is answered while what the other brought is at work: both processes are
 * busy. Within one process there is nothing to be had by that.
 */
const CLAIMS_AT_ONCE = { sqlite: 1, postgres: 2 } as const

interface Held {
  readonly call: ClaimedCall
  readonly stop: Stop
  run?: RecordedRun
}

/** A function that has begun, and what becomes of it. */
interface Begun {
  readonly run: RecordedRun
  readonly stop: Stop
  readonly outcome: Promise<Outcome>
}

/** Claims calls of this program's functions, many at a time, and carries them out side by side. */
export class Calls {
  readonly #options: CallsOptions
  readonly #names: readonly string[]
  readonly #isLimited: boolean
  readonly #held = new Map<AttemptId, Held>()
  #atWork = 0
  /** Places for calls that are being stored. */
  #reserved = 0
  /** Attempts of calls that are being stored. */
  readonly #opening = new Set<AttemptId>()
  readonly #known: KnownSteps
  readonly #unbegun: Unbegun
  /** Claims that are under way, and the places that they ask for. */
  #claims = 0
  #asked = 0
  /** A claim is about to be sent. */
  #isNext = false
  #mayBeMore = false
  /** The last claim was answered with as many as it had asked for. */
  #isBehind = false
  #takes = false
  #isClosed = false
  readonly #waiting: { readonly until: () => boolean; readonly tell: () => void }[] = []

  constructor(options: CallsOptions) {
    this.#options = options
    this.#known = new KnownSteps(options.store)
    this.#unbegun = new Unbegun(options.store, options.executor.warn)
    this.#names = [...options.functions.keys()]
    this.#isLimited = this.#names.some((name) => isLimited(options.limits, name))
  }

  held(): Iterable<AttemptId> {
    return this.#held.keys()
  }

  has(attempt: AttemptId): boolean {
    return this.#held.has(attempt) || this.#opening.has(attempt)
  }

  /** Whether a place elsewhere that becomes free may be one for a call. */
  get isLimited(): boolean {
    return this.#isLimited
  }

  get size(): number {
    return this.#held.size
  }

  start(): void {
    this.#takes = true
    this.look()
  }

  /** Takes nothing more; what is being claimed is still carried out. */
  stop(): void {
    this.#takes = false
  }

  /** From here on nobody renews a claim: what is answered now is given back. */
  close(): void {
    this.stop()
    this.#isClosed = true
  }

  /** Resolves when nothing is held any more. */
  settled(): Promise<void> {
    return this.#once(this.#isIdle)
  }

  /** Resolves when nothing is being stored or given back any more. */
  stored(): Promise<void> {
    return this.#once(() => this.#reserved === 0 && this.#unbegun.isIdle)
  }

  #once(until: () => boolean): Promise<void> {
    if (until()) return Promise.resolve()
    return new Promise((tell) => this.#waiting.push({ until, tell }))
  }

  /** What is being claimed, or stored to be carried out here, is about to be held. */
  readonly #isIdle = () => this.#held.size === 0 && this.#reserved === 0 && this.#claims === 0 && !this.#isNext

  #tellIdle(): void {
    if (this.#waiting.length === 0) return
    for (const each of this.#waiting.filter(({ until }) => until())) {
      this.#waiting.splice(this.#waiting.indexOf(each), 1)
      each.tell()
    }
  }

  remaining(): ClaimedCall[] {
    return [...this.#held.values()].map(({ call }) => call)
  }

  /** A function cannot be ended in its own process: it is told to stop, and left behind if it does not. */
  halt(attempt: AttemptId, why: StopReason): void {
    const held = this.#held.get(attempt)
    if (held === undefined || held.stop.isTold) return
    held.stop.tell(why)
    const { clock, executor } = this.#options
    if (why !== 'lease-lost') clock.after(executor.graceMs, () => held.run?.leaveBehind(), { ref: true })
  }

  /** The claim is another's now. */
  forget(attempt: AttemptId): void {
    this.halt(attempt, 'lease-lost')
    this.#letGo(attempt)
  }

  /**
   * A place for a call that is about to be stored, so that the same commit claims it: if there is one, if this program has the
   * function, and if nothing is known to wait for it.
   */
  reserve(agent: string): CallPlace | undefined {
    const { concurrency, functions, random, workerId, leaseMs, limits } = this.#options
    const isFree = this.#takes && this.#claims === 0 && !this.#mayBeMore && this.#atWork < concurrency
    if (!isFree || !functions.has(agent) || isLimited(limits, agent)) return undefined
    this.#atWork += 1
    this.#reserved += 1
    return { workerId, leaseMs, attemptId: newAttemptId(random) }
  }

  /** What became of a reserved place. */
  fill(call: ClaimedCall | undefined, begun?: Begun): void {
    this.#atWork -= 1
    this.#reserved -= 1
    if (call === undefined) this.#next()
    else this.take(call, begun)
    this.#tellIdle()
  }

  /** Stores a call and carries it out in a reserved place; the function begins at once, and its first steps with the call. */
  async callHere(call: NewCall, place: CallPlace): Promise<CalledHere> {
    const { store, clock } = this.#options
    // Of a known key the run may have begun long ago, or have ended: nothing begins before that is known.
    const begun = call.key === undefined ? this.#open(call, place) : undefined
    const steps = begun?.opening.send() ?? []
    const sentAt = clock.monotonicMs()
    let claimed: ClaimedCall | undefined
    this.#opening.add(place.attemptId)
    try {
      const called = await store.apply(callHere, call, place, steps)
      if (called.kind !== 'claimed') return called
      if (this.#mayBegin(sentAt)) claimed = called.call
      else this.#giveBack(called.call, steps)
      return claimed === undefined ? { kind: 'existing', runId: call.id } : called
    } catch (error) {
      // It may be stored all the same.
      if (errorCode(error) === 'store/unknown-commit') this.#unbegun.remember(place.attemptId, steps)
      throw error
    } finally {
      if (claimed === undefined) begun?.stop.tell('lease-lost')
      this.#opening.delete(place.attemptId)
      begun?.opening.tell(claimed)
      this.fill(claimed, begun)
    }
  }

  #open(call: NewCall, place: CallPlace): Begun & { readonly opening: Opening } {
    const { executor, functions, random } = this.#options
    const agent = functions.get(call.agent)!
    const [opening, stop] = [new Opening(), new Stop()]
    const run = new RecordedRun(executor, claimedHere(call, place), stop, { opening }, { agent, random })
    return { opening, stop, run, outcome: outcomeOf(agent.body, run) }
  }

  /** What took longer than its lease may be another's by now. */
  #mayBegin(sentAt: number): boolean {
    const { clock, executor, leaseMs } = this.#options
    const isLate = clock.monotonicMs() - sentAt > leaseMs * LIMITS.selfFenceShare
    return !this.#isClosed && !isLate && executor.mayStart?.() !== false
  }

  /** There may be something to claim. */
  look(): void {
    this.#mayBeMore = true
    this.#next()
  }

  #next(): void {
    const { store } = this.#options
    const isFull = this.#claims >= CLAIMS_AT_ONCE[store.engine]
    if (this.#isNext || isFull || !this.#mayBeMore || !this.#takes || this.#names.length === 0) return
    this.#isNext = true
    // At the end of this turn, so that all the places that became free in it are filled by one commit, and that this is the
    // one which records the ends of those that left them.
    afterThisTurn(() => this.#claimNow())
  }

  #claimNow(): void {
    const { concurrency, store } = this.#options
    this.#isNext = false
    const share = Math.ceil(concurrency / CLAIMS_AT_ONCE[store.engine])
    const places = Math.min(concurrency - this.#atWork - this.#asked, share, LIMITS.callsTogether)
    if (this.#takes && places > 0) {
      void this.#claim(places)
      this.#next()
    } else this.#tellIdle()
  }

  async #claim(places: number): Promise<void> {
    const { store, random, workerId, leaseMs, limits } = this.#options
    const attempts = Array.from({ length: places }, () => newAttemptId(random))
    this.#claims += 1
    this.#asked += places
    this.#mayBeMore = this.#isBehind
    this.#isBehind = false
    try {
      const calls = await store.apply(claimCalls, { workerId, leaseMs, agents: this.#names, attempts, limits })
      for (const call of calls) this.take(call)
      if (calls.length === places) this.#isBehind = this.#mayBeMore = true
    } catch (error) {
      this.#options.executor.warn(describeError(error))
    }
    this.#claims -= 1
    this.#asked -= places
    this.#next()
    this.#tellIdle()
  }

  take(call: ClaimedCall, begun?: Begun): void {
    if (this.#isClosed) this.#giveBack(call, [])
    else this.#carryOut(call, begun)
  }

  #giveBack(call: ClaimedCall, steps: readonly string[]): void {
    this.#unbegun.remember(call.attemptId, steps)
    void this.giveBack(refOfCall(call))
  }

  /** It is this worker's by the database, and nobody here carries it out. */
  async giveBack(ref: AttemptRef): Promise<void> {
    await this.#unbegun.giveBack(ref)
    this.#tellIdle()
  }

  #carryOut(call: ClaimedCall, begun: Begun | undefined): void {
    const held: Held = { call, stop: begun?.stop ?? new Stop() }
    this.#held.set(call.attemptId, held)
    this.#atWork += 1
    this.#perform(held, begun).then(
      () => this.#letGo(call.attemptId),
      (error: unknown) => {
        if (this.#held.has(call.attemptId)) this.#options.onBroken(call, describeError(error))
        this.#letGo(call.attemptId)
      },
    )
  }

  #letGo(attempt: AttemptId): void {
    const held = this.#held.get(attempt)
    if (held === undefined) return
    this.#held.delete(attempt)
    // A slot is free again, which others may have waited for.
    if (held.call.slots !== undefined) this.look()
    this.#tellIdle()
  }

  async #perform(held: Held, begun: Begun | undefined): Promise<void> {
    const { call, stop } = held
    let ended: Outcome | Halt
    try {
      held.run = begun?.run ?? (await this.#begin(call, stop))
      ended = await this.#toItsEnd(held, held.run, begun?.outcome)
    } finally {
      // Its place is free from here on: what is left is to be recorded, together with whatever is claimed next.
      this.#atWork -= 1
      this.#next()
    }
    await this.#conclude(call, held.run, ended, stop)
  }

  async #begin(call: ClaimedCall, stop: Stop): Promise<RecordedRun> {
    const { executor, functions, random } = this.#options
    const known = call.attempt === 1 ? [] : await this.#known.of(call.id)
    return new RecordedRun(executor, call, stop, { known }, { agent: functions.get(call.agent)!, random })
  }

  async #toItsEnd({ call, stop }: Held, run: RecordedRun, begun?: Promise<Outcome>): Promise<Outcome | Halt> {
    const { functions, clock } = this.#options
    const { timeoutMs } = call.request
    if (call.cancelled === true) return { kind: 'stopped', why: 'cancel-requested' }
    const disarm =
      timeoutMs === undefined
        ? undefined
        : clock.after(Math.max(1, timeoutMs - call.workedMs), () => this.halt(call.attemptId, 'timeout'), { ref: true })
    const outcome = begun ?? outcomeOf(functions.get(call.agent)!.body, run)
    const ended = await run.ended(outcome)
    // Steps that nobody waits for any more are over before anybody hears of the end.
    const quiet = stop.reason === 'lease-lost' ? undefined : run.quiet()
    if (quiet !== undefined) await quiet
    disarm?.()
    return ended
  }

  async #conclude(call: ClaimedCall, run: RecordedRun, ended: Outcome | Halt, stop: Stop): Promise<void> {
    const isLost = stop.reason === 'lease-lost' && !('state' in ended && ended.state === 'succeeded')
    const halt = 'kind' in ended ? ended : undefined
    if (isLost || (halt?.kind === 'stopped' && halt.why === 'superseded')) return
    const mayPark = (halt?.kind === 'undecided' || halt?.kind === 'waits') && !stop.isTold
    if (mayPark && (await this.#parked(call, run, halt.kind === 'waits' ? halt : undefined))) return
    if (call.attempt > 1 && stop.reason !== 'lease-lost') await this.#endRivals(call, run)
    await this.#finish(call, run, outcomeOfEnd(ended, call, stop))
  }

  /** It ends without having come to what a lost worker had begun: before that is anybody's doubt, nobody can do it any more. */
  async #endRivals({ id }: ClaimedCall, run: RecordedRun): Promise<void> {
    const { executor, store, clock } = this.#options
    if (!run.foundBegun()) return
    const steps = await untilStored(executor, () => store.read(stepsOf, id))
    if (steps.some((step) => run.foundBegun(step))) await untilStored(executor, () => endRivals(store, clock, id))
    // What it did itself is recorded before its end is.
    await run.quiet()
  }

  /** False: it is to be cancelled, and may not wait. */
  async #parked(call: ClaimedCall, run: RecordedRun, wait: Wait | undefined): Promise<boolean> {
    const { executor, store } = this.#options
    const [ref, unsaved] = [refOfCall(call), run.takeUnsaved()]
    const parked = await untilStored(executor, () => store.apply(parkCall, ref, unsaved, wait))
    return parked.kind === 'parked' || parked.run?.fence !== ref.fence || parked.run.state !== 'running'
  }

  async #finish(call: ClaimedCall, run: RecordedRun, outcome: Outcome): Promise<void> {
    const { executor, store, onEnd } = this.#options
    const [ref, unsaved] = [refOfCall(call), run.takeAll()]
    const ended = run.hasActions ? { ...call, hasActions: true } : call
    const write = () => store.apply(finishCall, ref, ended, outcome, unsaved)
    const finished = await write().catch(() => untilStored(executor, write))
    if (finished.kind === 'finished') return onEnd(call.id, outcome)
    const { state, code, error, result } = finished.run
    if (!isTerminal(state)) return
    // It is this very end if the answer to an earlier try was lost: then nobody else tells of it.
    onEnd(call.id, endOf({ state, code, error, result }))
    await untilStored(executor, () => store.apply(keepLateResult, ref, outcome))
  }
}

/** A call that was taken over. */
export function callOf({ run, attempt }: Claim): ClaimedCall {
  const { seq, id, threadId, agent, fence, input } = run
  const request = run.request as ClaimedCall['request']
  return {
    seq,
    id,
    threadId,
    agent,
    request,
    input: input ?? 'null',
    fence,
    attempt: run.attempt,
    attemptId: attempt.id,
    workedMs: attempt.claimedAt - (run.startedAt ?? attempt.claimedAt) - run.parkedMs,
    ...(attempt.slots.length === 0 ? {} : { slots: attempt.slots }),
    ...(run.cancelRequestedAt === null ? {} : { cancelled: true }),
  }
}

/** A message for a function has nobody who would read it. */
export async function refuseMessages(executor: Executor, claim: Claim): Promise<void> {
  const error = `${claim.run.agent} is a function: it is called with an input, and reads no messages`
  await finish(executor, refOf(claim), { state: 'failed', code: 'validation', error })
}

async function outcomeOf(body: FunctionBody, run: RecordedRun): Promise<Outcome> {
  try {
    const result = await insideOf(run, () => body(run as unknown as FunctionRun<never>))
    const text = asJson(result)
    if (text.kind === 'trouble')
      return { state: 'failed', code: 'validation', error: `what it returned cannot be kept: ${text.trouble}` }
    return { state: 'succeeded', ...(result === undefined ? {} : { result }) }
  } catch (error) {
    return { state: 'failed', code: 'tool', error: describeError(ourWord(error) ?? error) }
  }
}

/** An error of somebody else that came of one of ours: that says what to do. */
const ourWord = (error: unknown): HoldfastError | undefined =>
  error instanceof Error && error.cause instanceof HoldfastError ? error.cause : undefined

/** What was told to stop and failed, failed because of that. */
function outcomeOfEnd(ended: Outcome | Halt, { request }: ClaimedCall, stop: Stop): Outcome {
  const succeeded = 'state' in ended && ended.state === 'succeeded'
  if (!succeeded && stop.reason === 'timeout')
    return { state: 'failed', code: 'timeout', error: `timed out after ${formatDuration(request.timeoutMs ?? 0)}` }
  if ('state' in ended) return ended
  return ended.kind === 'broken' ? { state: 'failed', code: 'validation', error: ended.error } : { state: 'cancelled' }
}
