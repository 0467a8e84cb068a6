import { describeError } from '../../base/errors.ts'
import type { AttemptId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AttemptRef } from '../../runs/attempt.ts'
import { giveBackCall } from '../../runs/call.ts'
import type { Store } from '../../store/store.ts'

/**
 * Attempts that are this worker's by the database, or may be, and that nobody here carries out. The steps with which they were stored have
 * not begun: that is said when they are let go of, or a person would be asked about what certainly did not happen. What fails is
 * done when the next renewal of the leases finds the attempt again.
 */
export class Unbegun {
  readonly #store: Store
  readonly #warn: (message: string) => void
  readonly #steps = new Map<AttemptId, readonly string[]>()
  #underWay = 0

  constructor(store: Store, warn: (message: string) => void) {
    this.#store = store
    this.#warn = warn
  }

  get isIdle(): boolean {
    return this.#underWay === 0
  }

  /** Nobody knows whether it is stored. */
  remember(attempt: AttemptId, steps: readonly string[]): void {
    this.#steps.set(attempt, steps)
    // Those that are not stored are never found again, and stay here.
    if (this.#steps.size > LIMITS.callsTogether) this.#steps.delete(this.#steps.keys().next().value!)
  }

  async giveBack(ref: AttemptRef): Promise<void> {
    this.#underWay += 1
    try {
      await this.#store.apply(giveBackCall, ref, this.#steps.get(ref.id) ?? [])
      this.#steps.delete(ref.id)
    } catch (error) {
      this.#warn(describeError(error))
    } finally {
      this.#underWay -= 1
    }
  }
}
