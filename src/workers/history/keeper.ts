import { resolve } from 'node:path'

import { describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { becomeKeeper } from '../../events/retention.ts'
import type { ClockTrust } from './clock-trust.ts'
import type { ForgetOptions, Step } from './forget.ts'

export interface KeeperOptions extends Omit<ForgetOptions, 'share' | 'signal' | 'mayGoOn' | 'dry'> {
  readonly warn: (message: string) => void
}

/** What the configuration says; undefined: everything is kept. */
export function forgetting(
  config: LoadedConfig | undefined,
): Pick<ForgetOptions, 'cut' | 'actsMs' | 'occurrencesMs' | 'archive'> | undefined {
  const {
    runsKeptMs = LIMITS.runsKeptMs,
    threadsKeptMs,
    actsKeptMs,
    occurrencesKeptMs,
    archive,
  } = config?.retention ?? {}
  if (runsKeptMs === 'for-ever') return undefined
  return {
    cut: { runsMs: runsKeptMs, ...(threadsKeptMs === undefined ? {} : { threadsMs: threadsKeptMs }) },
    ...(actsKeptMs === undefined ? {} : { actsMs: actsKeptMs }),
    ...(occurrencesKeptMs === undefined ? {} : { occurrencesMs: occurrencesKeptMs }),
    ...(archive === undefined ? {} : { archive: resolve(config?.folder ?? '.', archive) }),
  }
}

type Trust = Pick<ClockTrust, 'holds'>

/** Forgets in the background: one daemon of a database at a time, a fifth of the time at most, and not while there is nothing. */
export class Keeper {
  readonly #options: KeeperOptions
  readonly #id: string
  #restsUntil = Number.NEGATIVE_INFINITY
  #heldUntil = Number.NEGATIVE_INFINITY
  readonly #stopping = new AbortController()
  #working: Promise<void> | undefined

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#id = options.random.hex(16)
  }

  /** Until it is through. Whoever tends a daemon does not wait for it. */
  async look(trust: Trust): Promise<void> {
    const { clock } = this.#options
    if (this.#stopping.signal.aborted || this.#working !== undefined || clock.monotonicMs() < this.#restsUntil) return
    this.#working = this.#pass(trust).finally(() => {
      this.#restsUntil = clock.monotonicMs() + LIMITS.forgetRestMs
      this.#working = undefined
    })
    await this.#working
  }

  /** After the transaction that is under way, and without the rest that follows it. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#working
  }

  async #pass(trust: Trust): Promise<void> {
    try {
      const { forgetHistory } = await import('./forget.ts')
      const mayGoOn = (step: Step) => this.#mayGoOn(step, trust)
      await forgetHistory({ ...this.#options, share: LIMITS.forgetShare, signal: this.#stopping.signal, mayGoOn })
    } catch (error) {
      if ((error as { code?: string }).code !== 'store/closed')
        this.#options.warn(`what is old will be forgotten later: ${describeError(error)}`)
    }
  }

  /** Looking costs nobody anything; what is old by a clock that may be wrong stays; what is removed is removed by one. */
  async #mayGoOn(step: Step, trust: Trust): Promise<boolean> {
    const { store, clock } = this.#options
    const { aborted } = this.#stopping.signal
    if (aborted || step === 'look') return !aborted
    if (!(await trust.holds())) return false
    if (step === 'tidy') return true
    if (clock.monotonicMs() < this.#heldUntil) return true
    const isMine = await store.apply(becomeKeeper, this.#id, LIMITS.keeperMs)
    if (isMine) this.#heldUntil = clock.monotonicMs() + LIMITS.keeperMs / 2
    return isMine
  }
}
