import { begins, ends } from '../../define/owner.ts'
import type { UnderWay } from '../../define/owner.ts'
import type { StepOutcome } from '../../runs/step.ts'

/** A try of a write, by the key of its step. */
export type Try = Pick<StepOutcome, 'name' | 'tries'> &
  UnderWay & {
    readonly listed: boolean
    /** Its place among those of its run that are under way; undefined: it is not. */
    at: number | undefined
  }

/** The tries of a run that are under way, in no order: one of thousands ends without being looked for. */
export class Tries {
  readonly #open: Try[] = []

  get size(): number {
    return this.#open.length
  }

  /** From here on it is under way here. */
  begin(begun: Try): void {
    begins(begun)
    begun.at = this.#open.push(begun) - 1
  }

  /** Under way no longer, if it was. */
  end(begun: Try): void {
    ends(begun)
    if (begun.at === undefined) return
    const last = this.#open.pop()!
    if (last !== begun) this.#open[(last.at = begun.at)] = last
    begun.at = undefined
  }

  [Symbol.iterator](): Iterator<Try> {
    return this.#open.values()
  }
}
