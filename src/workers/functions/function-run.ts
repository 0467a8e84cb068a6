import { describeError } from '../../base/errors.ts'
import type { FunctionRun, StepCall, StepOptions } from '../../define/function.ts'
import { OWN_LOOP } from '../../define/own-loop.ts'
import type { HasOwnLoop, KeptErrors, OwnLoop } from '../../define/own-loop.ts'
import { begins, ends, underWayHere } from '../../define/owner.ts'
import { refOfCall } from '../../runs/call.ts'
import type { ClaimedCall } from '../../runs/call.ts'
import type { Outcome } from '../../runs/finish.ts'
import { advanceRun, restartStep } from '../../runs/step.ts'
import type { Advanced, Step, StepOutcome, StepsRef } from '../../runs/step.ts'
import type { Executor } from '../execute.ts'
import { untilStored } from '../execute.ts'
import { StepFailed, asJson, askProbe, isNotDone, judgeCutOff, judgeDoubted, keyOf, notKept } from './judge-step.ts'
import type { Judged } from './judge-step.ts'
import type { Opening } from './opening.ts'
import type { OwnLoopPorts } from './own-loop.ts'
import { Halting } from './halt.ts'
import type { Halt } from './halt.ts'
import { Recorded } from './recorded.ts'
import { saveAfterThisTurn } from './saved-together.ts'
import { StepNames } from './step-names.ts'
import type { Stop } from './stop.ts'
import { Told } from './try.ts'
import type { Try } from './try.ts'

/** Whose run it is, and chance. */
type Ours = Pick<OwnLoopPorts, 'agent' | 'random'>

type Work<T> = (call: StepCall) => T | PromiseLike<T>

/** Of a read whose errors are something to who meets them again; others are met in the record's words. */
type Options = StepOptions & { readonly errors?: KeptErrors }

const NO_OPTIONS: Options = {}

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
  readonly #stop: Stop
  readonly #halting = new Halting()
  readonly #executor: Executor
  #call: ClaimedCall
  readonly #of: Ours
  #ref: StepsRef
  /** Until it is stored. */
  #opening: Opening | undefined
  #loop: Promise<OwnLoop> | undefined
  readonly #recorded: Recorded
  readonly #names = new StepNames()
  /** How many tries are under way. */
  #open = 0
  #unsaved: StepOutcome[] = []
  #saving = 0
  #isLeft = false
  readonly #whenQuiet: (() => void)[] = []

  constructor(
    executor: Executor,
    call: ClaimedCall,
    stop: Stop,
    from: { readonly known?: readonly Step[]; readonly opening?: Opening },
    of: Ours,
  ) {
    const { known = [], opening } = from
    this.id = call.id
    this.input = JSON.parse(call.input)
    this.attempt = call.attempt
    this.#stop = stop
    this.#executor = executor
    this.#call = call
    this.#of = of
    this.#ref = refOfCall(call)
    this.#opening = opening
    this.#recorded = Recorded.of(known)
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Resolves when the function may not go on; it is left where it is. */
  get halted(): Promise<Halt> {
    return new Promise((resolve) => this.#halting.when(resolve))
  }

  /** What its code comes to, or why it goes no further. */
  ended(outcome: Promise<Outcome>): Promise<Outcome | Halt> {
    return new Promise((resolve, reject) => {
      outcome.then(resolve, reject)
      this.#halting.when(resolve)
    })
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
    return this.#goNoFurther(halt)
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
    this.#recorded.passOver(prefix)
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
    for (const { run, name, tries, listed } of this.#open === 0 ? [] : (underWayHere() as readonly Partial<Try>[]))
      if (run === this)
        outcomes.push({
          ...doubt,
          name: name!,
          tries: tries!,
          listed: listed!,
          error: `${this.#stopWords()}; it was told to stop and does not`,
        })
    const error = 'its worker died while it was under way, and its run did not come back to it'
    return [...outcomes, ...this.#recorded.leftBehind().map(({ name, tries }) => ({ ...doubt, name, tries, error }))]
  }

  /** Whether an earlier attempt had begun this, or anything, and this one has not begun it again. */
  foundBegun(step?: Step): boolean {
    return step === undefined ? this.#recorded.hasCutOff : this.#recorded.hasBegun(step)
  }

  /** Undefined: nothing is under way, and nothing begins any more. Else resolves when that is so, or when they are left behind. */
  quiet(): Promise<void> | undefined {
    if (!this.#isQuiet()) return new Promise((resolve) => this.#whenQuiet.push(resolve))
    this.#halting.over()
    return undefined
  }

  /** It was told to stop, and has had its time to do so. */
  leaveBehind(): void {
    if (this.#halting.isSo && this.#isQuiet()) return
    this.#isLeft = true
    if (this.#open > 0) this.#executor.warn(`a step of run ${this.id} ignores its signal; it is left behind`)
    void this.#goNoFurther({ kind: 'stopped', why: this.#stop.reason === 'timeout' ? 'timeout' : 'cancel-requested' })
    this.#tellQuiet()
  }

  async step<T>(name: string, work: Work<T>, options: Options = NO_OPTIONS): Promise<T> {
    const key = this.#names.next(name)
    const known = this.#recorded.find(key)
    if (known !== undefined) {
      this.#recorded.reach(key)
      return this.#again(known, work, options)
    }
    if (!this.#recorded.isAllReached) await this.#recordedFirst(key)
    if (options.effect === 'read') {
      await this.#beforeRead()
      return this.#perform(this.#tryOf(key, 1), work, options)
    }
    const begun = this.#begins(key, 1)
    if (this.#mayNotGoOn()) return this.#dropped(begun)
    const isWithCall = this.#opening?.take(key) === true
    if (this.#opening !== undefined && !(await this.#isStored())) return this.#dropped(begun)
    if (!isWithCall) {
      const unsaved = this.takeUnsaved()
      let advanced: Advanced
      try {
        advanced = await this.#executor.store.apply(advanceRun, this.#ref, unsaved, key)
      } catch {
        advanced = await this.#advance(unsaved, key)
      }
      if (advanced.kind === 'refused') return this.#gone(begun, { kind: 'stopped', why: advanced.why })
    }
    if (this.#isOver) await this.#unlessStopped(begun)
    return this.#perform(begun, work, options)
  }

  #recordedFirst(name: string): Promise<void> {
    return this.#recorded.allReached(this.#executor.clock, (ahead) => {
      const error = `its code has changed since it began: it comes to step ${name} where ${ahead} is recorded; nothing was done again`
      void this.#goNoFurther({ kind: 'broken', error })
    })
  }

  /** What a write has done is on disk before anything else happens; a read may happen again, with those before it. */
  async #beforeRead(): Promise<void> {
    if (this.#opening !== undefined) await this.#stored()
    if (this.#mayNotGoOn()) return this.#never()
    if (this.#unsaved.some(({ effect }) => effect === 'write')) await this.#flush()
  }

  get #isOver(): boolean {
    return this.#stop.isTold || this.#halting.isSo
  }

  #mayNotGoOn(): boolean {
    if (this.#stop.isTold && !this.#halting.isSo) void this.#goNoFurther(this.#stopped())
    return this.#halting.isSo
  }

  #stopped(): Halt {
    const { reason } = this.#stop
    const why = reason === 'lease-lost' ? 'superseded' : reason === 'timeout' ? 'timeout' : 'cancel-requested'
    return { kind: 'stopped', why }
  }

  #stopWords(): string {
    return this.#stop.reason === 'timeout' ? 'timed out' : 'cancelled'
  }

  /**
   * Its intent is on disk. Whoever takes it over judges it by that: nothing has happened here, and nothing will. It is let go of, or nobody
   * could: a lease that was late is renewed again as soon as the database is back.
   */
  async #unlessStopped(begun: Try, state: 'failed' | 'in_doubt' = 'failed'): Promise<void> {
    if (this.#stop.reason === 'lease-lost') return this.#gone(begun, this.#stopped())
    if (this.#isOver) return this.#notDone(begun, state)
  }

  /** What its steps have come to, and the intent of the next: once more, until the database is back. */
  #advance(unsaved: readonly StepOutcome[], next?: string): Promise<Advanced> {
    return untilStored(this.#executor, () => this.#executor.store.apply(advanceRun, this.#ref, unsaved, next))
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
    if (!this.#halting.isSo) void this.#goNoFurther(this.#stopped())
    const error =
      state === 'failed' ? 'the run was stopped before it had begun' : 'its run was stopped before it was done again'
    this.#settle(begun, 'write', state, null, error, 'nobody')
    return this.#never()
  }

  #gone(begun: Try, halt: Halt): Promise<never> {
    void this.#goNoFurther(halt)
    return this.#dropped(begun)
  }

  #dropped(begun: Try): Promise<never> {
    this.#ends(begun)
    this.#tellQuiet()
    return this.#never()
  }

  /** No promise around what is there at once. */
  #perform<T>(begun: Try, work: Work<T>, options: Options): T | Promise<T> {
    let worked: T | PromiseLike<T>
    try {
      worked = work(new Told(begun.key, this.#stop))
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
    this.#settle(begun, effect, 'done', result, error, by)
    return error === null ? value : this.#goNoFurther({ kind: 'broken', error })
  }

  /** A write that throws has said nothing about what it did, unless it says so by `notDone`. */
  async #threw<T>(begun: Try, error: unknown, options: Options): Promise<T> {
    const { effect = 'write', errors } = options
    const sentence = describeError(error)
    if (effect === 'read' || isNotDone(error)) {
      const result = errors === undefined ? null : JSON.stringify(errors.keep(error))
      this.#settle(begun, effect, 'failed', result, sentence, null)
      throw error
    }
    if (this.#stop.reason === 'lease-lost') return this.#gone(begun, this.#stopped())
    const answer = this.#stop.isTold ? undefined : await this.#asked(begun.name, options)
    if (answer?.outcome === 'done') return this.#found<T>(begun, answer.result)
    const by = answer?.outcome === 'not_done' ? 'its probe' : 'nobody'
    const state = answer?.outcome === 'not_done' ? 'failed' : 'in_doubt'
    this.#settle(begun, effect, state, null, sentence, by)
    if (state === 'failed') throw error
    return this.#goNoFurther({ kind: 'undecided' })
  }

  #asked(name: string, options: Options) {
    return askProbe({ clock: this.#executor.clock, signal: this.signal }, keyOf(this.id, name), options)
  }

  #found<T>(begun: Try, result: unknown): T | Promise<T> {
    return this.#performed(begun, result as T, {}, 'its probe')
  }

  #settle(
    begun: Try,
    effect: StepOutcome['effect'],
    state: StepOutcome['state'],
    result: string | null,
    error: string | null,
    by: string | null,
  ): void {
    const { name, tries, listed } = begun
    this.#ends(begun)
    if (this.#recorded.hasCutOff) this.#recorded.know(name)
    this.#keep({ name, effect, tries, state, result, error, by, listed })
    this.#tellQuiet()
  }

  /** Recorded with whatever comes next; when that takes longer than this turn of the event loop, by itself. */
  #keep(outcome: StepOutcome): void {
    if (this.#unsaved.length > 0) return void this.#unsaved.push(outcome)
    // Nearly always the only one: a list that one is put to has room for sixteen more.
    this.#unsaved = [outcome]
    saveAfterThisTurn(this.#save)
  }

  readonly #save = () => {
    if (this.#unsaved.length > 0) void this.#flush()
  }

  async #flush(): Promise<void> {
    this.#saving += 1
    const unsaved = this.takeUnsaved()
    try {
      await this.#executor.store.apply(advanceRun, this.#ref, unsaved)
    } catch {
      await this.#advance(unsaved).catch(() => {})
    }
    this.#saving -= 1
    this.#tellQuiet()
  }

  #isQuiet(): boolean {
    return this.#isLeft || (this.#open === 0 && this.#saving === 0)
  }

  #tellQuiet(): void {
    if (this.#whenQuiet.length === 0 || !this.#isQuiet()) return
    // A branch that nobody waits for could come to its next step while the end is being recorded, and share its commit.
    this.#halting.over()
    for (const tell of this.#whenQuiet.splice(0)) tell()
  }

  /** It had begun before: by an earlier worker, which was lost, or before its run was parked. */
  async #again<T>(known: Step, work: Work<T>, options: Options): Promise<T> {
    const { name, state, error, result } = known
    if (state === 'done') return error === null ? (result as T) : this.#goNoFurther({ kind: 'broken', error })
    if (state === 'failed')
      throw result === null || options.errors === undefined
        ? new StepFailed(name, error)
        : options.errors.revive(result)
    if (this.#mayNotGoOn()) return this.#notReached(known)
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
    if (judged.kind === 'doubt') this.#settle(cut, 'write', 'in_doubt', null, judged.error, 'nobody')
    return this.#goNoFurther(judged.kind === 'refused' ? { kind: 'stopped', why: judged.why } : { kind: 'undecided' })
  }

  /** Of what an earlier try may have done, a stop before this one says nothing. */
  async #onceMore<T>(begun: Try, work: Work<T>, options: Options): Promise<T> {
    await this.#unlessStopped(begun, 'in_doubt')
    return this.#perform(begun, work, options)
  }

  #tryOf(name: string, tries: number, listed = false): Try {
    return { run: this, name, tries, listed, key: keyOf(this.id, name), at: undefined }
  }

  /** From here on it is under way here. */
  #begins(name: string, tries: number, listed?: boolean): Try {
    const begun = this.#tryOf(name, tries, listed)
    begins(begun)
    this.#open += 1
    return begun
  }

  #ends(begun: Try): void {
    if (ends(begun)) this.#open -= 1
  }

  /** What had begun there is judged by whoever comes to it, or is in doubt when the run ends. */
  #notReached(known: Step): Promise<never> {
    this.#recorded.leave(known)
    return this.#never()
  }

  async #restart<T>(known: Step, work: Work<T>, options: Options): Promise<T> {
    if (this.#mayNotGoOn()) return this.#notReached(known)
    const { store } = this.#executor
    const begun = this.#begins(known.name, known.tries + 1, known.actionId !== null)
    const restart = () => store.apply(restartStep, this.#ref, known)
    const restarted = await restart().catch(() => untilStored(this.#executor, restart))
    if (restarted.kind === 'restarted') {
      this.#recorded.know(known.name)
      return this.#perform(begun, work, options)
    }
    if (restarted.kind === 'refused') {
      this.#recorded.leave(known)
      void this.#goNoFurther({ kind: 'stopped', why: restarted.why })
    }
    void this.#dropped(begun)
    return restarted.kind === 'settled' ? this.#again(restarted.step, work, options) : this.#never()
  }

  #goNoFurther(halt: Halt): Promise<never> {
    this.#halting.halt(halt)
    return this.#never()
  }

  /** No exception: the function could take it for something of its own and go on. */
  #never(): Promise<never> {
    return new Promise<never>(() => {})
  }
}
