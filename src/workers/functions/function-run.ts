import { HoldfastError, describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import type { FunctionRun, StepCall, StepOptions } from '../../define/function.ts'
import { OWN_LOOP } from '../../define/own-loop.ts'
import type { HasOwnLoop, KeptErrors, OwnLoop } from '../../define/own-loop.ts'
import { refOfCall } from '../../runs/call.ts'
import type { ClaimedCall } from '../../runs/call.ts'
import type { Wait } from '../../runs/finish-call.ts'
import { advanceRun, restartStep } from '../../runs/step.ts'
import type { Advanced, Step, StepOutcome, StepsRef } from '../../runs/step.ts'
import type { Executor } from '../execute.ts'
import { untilStored } from '../execute.ts'
import { StepFailed, asJson, askProbe, isNotDone, judgeCutOff, judgeDoubted, keyOf, notKept } from './judge-step.ts'
import type { Judged } from './judge-step.ts'
import type { Opening } from './opening.ts'
import type { OwnLoopPorts } from './own-loop.ts'
import { saveAfterThisTurn } from './saved-together.ts'
import { Tries } from './tries.ts'
import type { Try } from './tries.ts'

/** Why a function got no further. */
export type Halt =
  | { readonly kind: 'stopped'; readonly why: 'cancel-requested' | 'superseded' | 'timeout' }
  /** A write may or may not have happened, or may not be done without a yes: a person says which. */
  | { readonly kind: 'undecided' }
  | ({ readonly kind: 'waits' } & Wait)
  /** It cannot go on: its code is not the one that began, or what a step returned cannot be kept. */
  | { readonly kind: 'broken'; readonly error: string }

/** Whose run it is, and chance. */
type Ours = Pick<OwnLoopPorts, 'agent' | 'random'>

type Work<T> = (call: StepCall) => T | PromiseLike<T>

/** Of a read whose errors are something to who meets them again; others are met in the record's words. */
type Options = StepOptions & { readonly errors?: KeptErrors }

/** What is there already is not waited for: a turn of the queue less for each step. */
const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') && 'then' in value

/**
 * What a function does, recorded:
 *
 *   intent of step 1 ─▶ step 1 ─▶ its outcome, and the intent of step 2 ─▶ step 2 ─▶ … ─▶ the last outcome, and the run's end
 *
 * The function goes on with what a step returned while that is being recorded, but nothing happens before it is: the next
 * step begins after a commit that has both. So there is one commit between two steps.
 */
export class RecordedRun implements FunctionRun, HasOwnLoop {
  readonly id: string
  readonly input: unknown
  readonly attempt: number
  readonly signal: AbortSignal
  /** Resolves when the function may not go on; it is left where it is. */
  readonly halted: Promise<Halt>
  readonly #halt: (halt: Halt) => void
  readonly #executor: Executor
  #call: ClaimedCall
  readonly #of: Ours
  #ref: StepsRef
  /** Until it is stored. */
  #opening: Opening | undefined
  #loop: Promise<OwnLoop> | undefined
  readonly #known = new Map<string, Step>()
  /** Steps that are recorded and that this attempt has not come to. */
  readonly #ahead = new Set<string>()
  /** Those that an earlier attempt had begun, and of which this one does not know what became of them. */
  readonly #cutOff = new Set<string>()
  readonly #names = new Map<string, number>()
  readonly #open = new Tries()
  #unsaved: StepOutcome[] = []
  #saving = 0
  #isHalted = false
  #isLeft = false
  readonly #whenQuiet: (() => void)[] = []
  readonly #whenReached: (() => void)[] = []

  constructor(
    executor: Executor,
    call: ClaimedCall,
    signal: AbortSignal,
    from: { readonly known?: readonly Step[]; readonly opening?: Opening },
    of: Ours,
  ) {
    const { known = [], opening } = from
    this.id = call.id
    this.input = JSON.parse(call.input)
    this.attempt = call.attempt
    this.signal = signal
    this.#executor = executor
    this.#call = call
    this.#of = of
    this.#ref = refOfCall(call)
    this.#opening = opening
    for (const step of known) {
      this.#known.set(step.name, step)
      this.#ahead.add(step.name)
      if (step.state === 'started') this.#cutOff.add(step.name)
    }
    const { promise, resolve } = Promise.withResolvers<Halt>()
    this.halted = promise
    this.#halt = resolve
  }

  /** For a loop that is not ours; its code is loaded when there is one. */
  [OWN_LOOP](): Promise<OwnLoop> {
    this.#loop ??= import('./own-loop.ts').then(async ({ RunLoop }) => {
      await this.#stored()
      return new RunLoop({ executor: this.#executor, call: this.#call, run: this, ...this.#of })
    })
    return this.#loop
  }

  /** A loop inside of it has, or may have, actions that end with it. */
  get hasActions(): boolean {
    return this.#loop !== undefined
  }

  /** The function is left where it is. */
  halt(halt: Halt): Promise<never> {
    return this.#stop(halt)
  }

  /** Something is under way that must be over before the run ends. */
  busy(): () => void {
    this.#saving += 1
    return () => {
      this.#saving -= 1
      this.#tellQuiet()
    }
  }

  /** What was done inside of something that is answered from the record is not come to again. */
  passOver(prefix: string): void {
    for (const name of this.#ahead) if (name.startsWith(prefix)) this.#reach(name)
  }

  /** What is not recorded yet; whoever takes it records it. */
  takeUnsaved(): readonly StepOutcome[] {
    const unsaved = this.#unsaved
    this.#unsaved = []
    return unsaved
  }

  /** The same when the run ends: whatever had begun and will not be heard of before that is in doubt. */
  takeAll(): readonly StepOutcome[] {
    const outcomes = [...this.takeUnsaved()]
    const doubt = { effect: 'write', state: 'in_doubt', result: null, by: 'nobody' } as const
    for (const { name, tries, listed } of this.#open)
      outcomes.push({ ...doubt, name, tries, listed, error: `${this.#stopWords()}; it was told to stop and does not` })
    for (const { name, tries, state } of this.#known.values())
      if (this.#ahead.has(name) && state === 'started')
        outcomes.push({
          ...doubt,
          name,
          tries,
          error: 'its worker died while it was under way, and its run did not come back to it',
        })
    return outcomes
  }

  /** Whether an earlier attempt had begun this, or anything, and this one has not begun it again. */
  foundBegun(step?: Step): boolean {
    if (step === undefined) return this.#cutOff.size > 0
    const known = this.#known.get(step.name)
    return step.state === 'started' && known?.state === 'started' && known.tries === step.tries
  }

  /** Undefined: no write is under way. Else resolves when that is so, or when they are left behind. */
  quiet(): Promise<void> | undefined {
    if (this.#isQuiet()) return undefined
    return new Promise((resolve) => this.#whenQuiet.push(resolve))
  }

  /** It was told to stop, and has had its time to do so. */
  leaveBehind(): void {
    if (this.#isHalted && this.#isQuiet()) return
    this.#isLeft = true
    if (this.#open.size > 0) this.#executor.warn(`a step of run ${this.id} ignores its signal; it is left behind`)
    void this.#stop({ kind: 'stopped', why: this.signal.reason === 'timeout' ? 'timeout' : 'cancel-requested' })
    this.#tellQuiet()
  }

  async step<T>(name: string, work: Work<T>, options: Options = {}): Promise<T> {
    const key = this.#nextKey(name)
    const known = this.#known.get(key)
    if (known !== undefined) {
      this.#reach(key)
      return this.#again(known, work, options)
    }
    if (this.#ahead.size > 0) await this.#recordedFirst(key)
    if (options.effect === 'read') {
      await this.#beforeRead()
      return this.#perform(this.#tryOf(key, 1), work, options)
    }
    const begun = this.#begins(key, 1)
    if (this.#mayNotGoOn()) return this.#dropped(begun)
    const isWithCall = this.#opening?.take(key) === true
    if (this.#opening !== undefined && !(await this.#isStored())) return this.#dropped(begun)
    const advanced = isWithCall ? undefined : await this.#advance(key)
    if (advanced?.kind === 'refused') return this.#gone(begun, { kind: 'stopped', why: advanced.why })
    if (this.#isHalted || this.signal.aborted) await this.#unlessStopped(begun)
    return this.#perform(begun, work, options)
  }

  #nextKey(name: string): string {
    // The second step of a name gets a number behind it; and a database cannot keep a NUL.
    if (name === '' || name.length > LIMITS.stepNameCharacters || name.includes('#') || name.includes('\0'))
      throw new HoldfastError('usage/step', `"${name}" cannot be the name of a step`, {
        remedy: `give it 1 to ${LIMITS.stepNameCharacters} characters, and no # or NUL`,
      })
    const count = (this.#names.get(name) ?? 0) + 1
    this.#names.set(name, count)
    return count === 1 ? name : `${name}#${count}`
  }

  #reach(name: string): void {
    if (!this.#ahead.delete(name) || this.#ahead.size > 0) return
    for (const tell of this.#whenReached.splice(0)) tell()
  }

  /**
   * What is recorded comes first. Branches that run side by side come to theirs within a moment; a function that does not is
   * not the one that began, and a step of it might be one that was done under another name.
   */
  async #recordedFirst(name: string): Promise<void> {
    const changed = () => {
      const error = `its code has changed since it began: it comes to step ${name} where ${[...this.#ahead].join(', ')} is recorded; nothing was done again`
      void this.#stop({ kind: 'broken', error })
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#executor.clock.after(LIMITS.recordedFirstMs, changed, { ref: true })
    this.#whenReached.push(resolve)
    await promise
    cancel()
  }

  /** What a write has done is on disk before anything else happens; a read may happen again, with those before it. */
  async #beforeRead(): Promise<void> {
    if (this.#opening !== undefined) await this.#stored()
    if (this.#mayNotGoOn()) return this.#never()
    if (this.#unsaved.some(({ effect }) => effect === 'write')) await this.#flush()
  }

  #mayNotGoOn(): boolean {
    if (this.signal.aborted && !this.#isHalted) void this.#stop(this.#stopped())
    return this.#isHalted
  }

  #stopped(): Halt {
    const { reason } = this.signal
    const why = reason === 'lease-lost' ? 'superseded' : reason === 'timeout' ? 'timeout' : 'cancel-requested'
    return { kind: 'stopped', why }
  }

  #stopWords(): string {
    return this.signal.reason === 'timeout' ? 'timed out' : 'cancelled'
  }

  /**
   * Its intent is on disk. Whoever takes it over judges it by that: nothing has happened here, and nothing will. It is let go of, or nobody
   * could: a lease that was late is renewed again as soon as the database is back.
   */
  async #unlessStopped(begun: Try, state: 'failed' | 'in_doubt' = 'failed'): Promise<void> {
    if (this.signal.reason === 'lease-lost') return this.#gone(begun, this.#stopped())
    if (this.#isHalted || this.signal.aborted) return this.#notDone(begun, state)
  }

  /** What its steps have come to, and the intent of the next. */
  #advance(next?: string): Promise<Advanced> {
    const unsaved = this.takeUnsaved()
    const advance = () => this.#executor.store.apply(advanceRun, this.#ref, unsaved, next)
    return advance().catch(() => untilStored(this.#executor, advance))
  }

  /** A function whose call is not stored is left where it is. */
  async #stored(): Promise<void> {
    if (this.#opening !== undefined && !(await this.#isStored())) await this.#never()
  }

  /** False: its call is not stored, and it goes no further. */
  async #isStored(): Promise<boolean> {
    const call = await this.#opening!.stored
    if (call === undefined) return false
    this.#opening = undefined
    this.#call = call
    this.#ref = refOfCall(call)
    return true
  }

  /** Its intent is on disk, and it will not be done: another step of the run stands in its way. */
  #notDone(begun: Try, state: 'failed' | 'in_doubt'): Promise<never> {
    if (!this.#isHalted) void this.#stop(this.#stopped())
    const error =
      state === 'failed' ? 'the run was stopped before it had begun' : 'its run was stopped before it was done again'
    this.#settle(begun, { effect: 'write', state, result: null, error, by: 'nobody' })
    return this.#never()
  }

  #gone(begun: Try, halt: Halt): Promise<never> {
    void this.#stop(halt)
    return this.#dropped(begun)
  }

  #dropped(begun: Try): Promise<never> {
    this.#open.end(begun)
    this.#tellQuiet()
    return this.#never()
  }

  /** No promise around what is there at once. */
  #perform<T>(begun: Try, work: Work<T>, options: Options): T | Promise<T> {
    let worked: T | PromiseLike<T>
    try {
      worked = work({ key: begun.key, signal: this.signal })
      if (isThenable(worked)) return this.#performing(begun, worked, options)
    } catch (error) {
      return this.#threw<T>(begun, error, options)
    }
    return this.#performed(begun, worked, options)
  }

  async #performing<T>(begun: Try, worked: PromiseLike<T>, options: Options): Promise<T> {
    let value: T
    try {
      value = await worked
    } catch (error) {
      return this.#threw<T>(begun, error, options)
    }
    return this.#performed(begun, value, options)
  }

  /** It is done, whether or not what it came to can be kept. Where not, its record says so: whoever comes to it later ends there, too. */
  #performed<T>(begun: Try, value: T, { effect = 'write' }: Options, by: string | null = null): T | Promise<T> {
    const text = asJson(value)
    const result = text.kind === 'json' ? text.text : null
    const error = text.kind === 'json' ? null : notKept(begun.name, by, text.trouble)
    this.#settle(begun, { effect, state: 'done', result, error, by })
    return error === null ? value : this.#stop({ kind: 'broken', error })
  }

  /** A write that throws has said nothing about what it did, unless it says so by `notDone`. */
  async #threw<T>(begun: Try, error: unknown, options: Options): Promise<T> {
    const { effect = 'write', errors } = options
    const sentence = describeError(error)
    if (effect === 'read' || isNotDone(error)) {
      const result = errors === undefined ? null : JSON.stringify(errors.keep(error))
      this.#settle(begun, { effect, state: 'failed', result, error: sentence, by: null })
      throw error
    }
    if (this.signal.reason === 'lease-lost') return this.#gone(begun, this.#stopped())
    const answer = this.signal.aborted ? undefined : await this.#asked(begun.name, options)
    if (answer?.outcome === 'done') return this.#found<T>(begun, answer.result)
    const by = answer?.outcome === 'not_done' ? 'its probe' : 'nobody'
    const state = answer?.outcome === 'not_done' ? 'failed' : 'in_doubt'
    this.#settle(begun, { effect, state, result: null, error: sentence, by })
    if (state === 'failed') throw error
    return this.#stop({ kind: 'undecided' })
  }

  #asked(name: string, options: Options) {
    return askProbe({ clock: this.#executor.clock, signal: this.signal }, keyOf(this.id, name), options)
  }

  #found<T>(begun: Try, result: unknown): T | Promise<T> {
    return this.#performed(begun, result as T, {}, 'its probe')
  }

  #settle(begun: Try, outcome: Omit<StepOutcome, 'name' | 'tries' | 'listed'>): void {
    const { name, tries, listed } = begun
    const { effect, state, result, error, by } = outcome
    this.#open.end(begun)
    this.#cutOff.delete(name)
    this.#keep({ name, effect, tries, state, result, error, by, listed })
    this.#tellQuiet()
  }

  /** Recorded with whatever comes next; when that takes longer than this turn of the event loop, by itself. */
  #keep(outcome: StepOutcome): void {
    if (this.#unsaved.push(outcome) === 1) saveAfterThisTurn(this.#save)
  }

  readonly #save = () => {
    if (this.#unsaved.length > 0) void this.#flush()
  }

  async #flush(): Promise<void> {
    this.#saving += 1
    await this.#advance().catch(() => {})
    this.#saving -= 1
    this.#tellQuiet()
  }

  #isQuiet(): boolean {
    return this.#isLeft || (this.#open.size === 0 && this.#saving === 0)
  }

  #tellQuiet(): void {
    if (this.#whenQuiet.length > 0 && this.#isQuiet()) for (const tell of this.#whenQuiet.splice(0)) tell()
  }

  /** It had begun before: by an earlier worker, which was lost, or before its run was parked. */
  async #again<T>(known: Step, work: Work<T>, options: Options): Promise<T> {
    const { name, state, error, result } = known
    if (state === 'done') return error === null ? (result as T) : this.#stop({ kind: 'broken', error })
    if (state === 'failed')
      throw result === null || options.errors === undefined
        ? new StepFailed(name, error)
        : options.errors.revive(result)
    if (this.#mayNotGoOn()) return this.#notReached(name)
    const { store, clock, warn } = this.#executor
    const ports = {
      store,
      clock,
      warn,
      runId: this.#ref.runId,
      signal: this.signal,
      mayNotGoOn: () => this.#mayNotGoOn(),
    }
    const judged =
      state === 'started'
        ? await judgeCutOff(ports, known, options)
        : await judgeDoubted(ports, this.#ref, known, options)
    return this.#asJudged(known, judged, work, options)
  }

  async #asJudged<T>(known: Step, judged: Judged, work: Work<T>, options: Options): Promise<T> {
    const { name, tries } = known
    const cut = this.#tryOf(name, tries, known.actionId !== null)
    if (judged.kind === 'done') return this.#found<T>(cut, judged.result)
    if (judged.kind === 'settled') return this.#again(judged.step, work, options)
    if (judged.kind === 'failed') throw judged.error
    if (judged.kind === 'left') return this.#never()
    if (judged.kind === 'restart') return this.#restart(known, work, options)
    if (judged.kind === 'again') return this.#onceMore(this.#begins(name, judged.tries, true), work, options)
    if (judged.kind === 'doubt')
      this.#settle(cut, { effect: 'write', state: 'in_doubt', result: null, error: judged.error, by: 'nobody' })
    return this.#stop(judged.kind === 'refused' ? { kind: 'stopped', why: judged.why } : { kind: 'undecided' })
  }

  /** Of what an earlier try may have done, a stop before this one says nothing. */
  async #onceMore<T>(begun: Try, work: Work<T>, options: Options): Promise<T> {
    await this.#unlessStopped(begun, 'in_doubt')
    return this.#perform(begun, work, options)
  }

  #tryOf(name: string, tries: number, listed = false): Try {
    return { name, tries, listed, key: keyOf(this.id, name), at: undefined }
  }

  /** From here on it is under way here. */
  #begins(name: string, tries: number, listed?: boolean): Try {
    const begun = this.#tryOf(name, tries, listed)
    this.#open.begin(begun)
    return begun
  }

  /** What had begun there is judged by whoever comes to it, or is in doubt when the run ends. */
  #notReached(name: string): Promise<never> {
    this.#ahead.add(name)
    return this.#never()
  }

  async #restart<T>(known: Step, work: Work<T>, options: Options): Promise<T> {
    if (this.#mayNotGoOn()) return this.#notReached(known.name)
    const { store } = this.#executor
    const begun = this.#begins(known.name, known.tries + 1, known.actionId !== null)
    const restart = () => store.apply(restartStep, this.#ref, known)
    const restarted = await restart().catch(() => untilStored(this.#executor, restart))
    if (restarted.kind === 'restarted') {
      this.#cutOff.delete(known.name)
      return this.#perform(begun, work, options)
    }
    if (restarted.kind === 'refused') {
      this.#ahead.add(known.name)
      void this.#stop({ kind: 'stopped', why: restarted.why })
    }
    void this.#dropped(begun)
    return restarted.kind === 'settled' ? this.#again(restarted.step, work, options) : this.#never()
  }

  #stop(halt: Halt): Promise<never> {
    this.#isHalted = true
    this.#halt(halt)
    return this.#never()
  }

  /** No exception: the function could take it for something of its own and go on. */
  #never(): Promise<never> {
    return new Promise<never>(() => {})
  }
}
