import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Step } from '../../runs/step.ts'

/** What earlier attempts of a run have recorded, and how far this one has come in it. */
export class Recorded {
  readonly #steps = new Map<string, Step>()
  /** Those that this attempt has not come to. */
  readonly #ahead = new Set<string>()
  /** Those that an earlier attempt had begun, and of which this one does not know what became of them. */
  readonly #cutOff = new Set<string>()
  readonly #whenReached: (() => void)[] = []

  private constructor(steps: readonly Step[]) {
    for (const step of steps) {
      this.#steps.set(step.name, step)
      this.#ahead.add(step.name)
      if (step.state === 'started') this.#cutOff.add(step.name)
    }
  }

  static readonly #nothing = new Recorded([])

  /** Nearly all runs have one attempt: of nothing there is one for all. */
  static of(steps: readonly Step[]): Recorded {
    return steps.length === 0 ? Recorded.#nothing : new Recorded(steps)
  }

  find(name: string): Step | undefined {
    return this.#steps.get(name)
  }

  get isAllReached(): boolean {
    return this.#ahead.size === 0
  }

  reach(name: string): void {
    if (!this.#ahead.delete(name) || this.#ahead.size > 0) return
    for (const tell of this.#whenReached.splice(0)) tell()
  }

  /** What was done inside of something that is answered from the record is not come to again. */
  passOver(prefix: string): void {
    for (const name of this.#ahead) if (name.startsWith(prefix)) this.reach(name)
  }

  /** It was come to, and not judged: whoever comes next does. */
  leave({ name }: Step): void {
    this.#ahead.add(name)
  }

  /**
   * What is recorded comes first. Branches that run side by side come to theirs within a moment; a function that does not is
   * not the one that began, and a step of it might be one that was done under another name.
   */
  async allReached(clock: Clock, late: (ahead: string) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(LIMITS.recordedFirstMs, () => late([...this.#ahead].join(', ')), { ref: true })
    this.#whenReached.push(resolve)
    await promise
    cancel()
  }

  /** What became of it is known now. */
  know(name: string): void {
    this.#cutOff.delete(name)
  }

  get hasCutOff(): boolean {
    return this.#cutOff.size > 0
  }

  /** Whether an earlier attempt had begun this very try. */
  hasBegun({ name, state, tries }: Step): boolean {
    const known = this.#steps.get(name)
    return state === 'started' && known?.state === 'started' && known.tries === tries
  }

  /** What had begun, and was not come to. */
  leftBehind(): readonly Step[] {
    return [...this.#steps.values()].filter(({ name, state }) => state === 'started' && this.#ahead.has(name))
  }
}
