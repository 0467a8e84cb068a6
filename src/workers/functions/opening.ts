import type { ClaimedCall } from '../../runs/call.ts'

/**
 * A call whose function has begun before it is stored, so that the intents of its first steps are in the same commit:
 *
 *   its code up to the first step ─▶ the call, its claim and the intent of that step ─▶ the step
 *
 * Only code runs before that commit, as it does again in each attempt; a step waits for it.
 */
export class Opening {
  /** The call as it is stored; undefined: it is not, or is not to be carried out here. */
  readonly stored: Promise<ClaimedCall | undefined>
  readonly tell: (call: ClaimedCall | undefined) => void
  readonly #steps: string[] = []
  #isSent = false

  constructor() {
    const { promise, resolve } = Promise.withResolvers<ClaimedCall | undefined>()
    this.stored = promise
    this.tell = resolve
  }

  /** False: too late, it is on its way. */
  take(step: string): boolean {
    if (!this.#isSent) this.#steps.push(step)
    return !this.#isSent
  }

  /** What it begins with; from here on nothing more is taken. */
  send(): readonly string[] {
    this.#isSent = true
    return this.#steps
  }
}
