import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import type { Store } from './store.ts'

export interface LookoutOptions {
  readonly store: Pick<Store, 'onChange'>
  readonly clock: Clock
  /** Never throws. */
  readonly look: () => Promise<void>
  /** The shortest time between two looks. */
  readonly everyMs?: number
}

/**
 * Looks after commits: at once, and for what follows within half a second once more after it. One look at a time; who asks
 * meanwhile shares it.
 */
export class Lookout {
  readonly #options: LookoutOptions
  #stopListening = () => {}
  #lookedAt = Number.NEGATIVE_INFINITY
  #cancelLater: (() => void) | undefined
  #looking: Promise<void> | undefined
  #stopped = false

  constructor(options: LookoutOptions) {
    this.#options = options
  }

  listen(): this {
    this.#stopListening = this.#options.store.onChange(() => this.soon())
    return this
  }

  soon(): void {
    if (this.#stopped || this.#cancelLater !== undefined) return
    const { clock, everyMs = LIMITS.wakeLookMs } = this.#options
    const waitMs = this.#lookedAt + everyMs - clock.monotonicMs()
    if (waitMs <= 0 && this.#looking === undefined) return void this.look()
    // A look that is under way may have begun before the commit: there is another one after it.
    this.#cancelLater = clock.after(waitMs <= 0 ? everyMs : waitMs, () => {
      this.#cancelLater = undefined
      this.soon()
    })
  }

  look(): Promise<void> {
    this.#lookedAt = this.#options.clock.monotonicMs()
    return (this.#looking ??= this.#options.look().finally(() => (this.#looking = undefined)))
  }

  /** Resolves when a look that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#stopListening()
    this.#cancelLater?.()
    await this.#looking
  }
}
