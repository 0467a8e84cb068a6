import { sleep } from '../base/clock.ts'
import type { Clock, Instant } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import type { Randomness } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { LanguageModel, ModelCallOptions, ModelReply, ModelRequest, ModelUsage } from '../loop/ports.ts'
import type { Store } from '../store/store.ts'
import { isAboutQuota, isRetried } from './model-error.ts'
import type { ModelError } from './model-error.ts'
import { blockQuota, quotaSucceeded, seeQuota, waitFor } from './quota.ts'
import type { QuotaAnswer, Slot } from './quota.ts'
import { tryModel } from './try-model.ts'
import type { Tried } from './try-model.ts'
import { addUsage, NO_USAGE } from '../loop/usage.ts'

export interface ModelPorts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly warn: (message: string) => void
}

/** `spent` is the cost of every try, failed ones included. */
export type ModelOutcome = (
  | { readonly kind: 'replied'; readonly reply: ModelReply }
  /** Too long to wait here: ask again at `until`, by the database's clock. */
  | { readonly kind: 'park'; readonly until: Instant; readonly reason: string }
  | { readonly kind: 'failed'; readonly code: 'auth' | 'model'; readonly error: ModelError }
  | { readonly kind: 'cancelled' }
) & { readonly spent: ModelUsage }

/**
 * The one way to ask a model, for turns and side calls alike. Before each try the quota is asked; what the provider
 * says about waiting is stored for everyone on it and obeyed; other passing troubles are tried again after 1, 2, 4 s.
 */
export async function callModel(
  ports: ModelPorts,
  model: LanguageModel,
  request: ModelRequest,
  options: ModelCallOptions,
): Promise<ModelOutcome> {
  const call = new Call(ports, model, request, options)
  const ended = await call.toItsEnd()
  return { ...ended, spent: call.spent }
}

type Ended = ModelOutcome extends infer Outcome ? (Outcome extends unknown ? Omit<Outcome, 'spent'> : never) : never
type Failed = Extract<Tried, { kind: 'failed' }>

class Call {
  readonly #ports: ModelPorts
  readonly #model: LanguageModel
  readonly #request: ModelRequest
  readonly #options: ModelCallOptions
  #failures = 0
  #waitedMs = 0
  #slot: Slot | undefined
  spent = NO_USAGE

  constructor(ports: ModelPorts, model: LanguageModel, request: ModelRequest, options: ModelCallOptions) {
    this.#ports = ports
    this.#model = model
    this.#request = request
    this.#options = options
  }

  async toItsEnd(): Promise<Ended> {
    for (;;) {
      const stopped = (await this.#myTurn()) ?? (await this.#oneTry())
      if (stopped !== undefined) return stopped
    }
  }

  /** Comes back when the quota lets this call go. */
  async #myTurn(): Promise<Ended | undefined> {
    for (;;) {
      if (this.#options.signal.aborted) return { kind: 'cancelled' }
      const answer = await this.#askQuota()
      this.#slot = answer.slot
      if (answer.kind === 'go') return undefined
      const { waitMs, until, reason } = answer
      if (this.#isTooLong(waitMs)) return { kind: 'park', until, reason }
      await this.#wait(waitMs)
    }
  }

  async #oneTry(): Promise<Ended | undefined> {
    const tried = await tryModel(this.#ports.clock, this.#model, this.#request, this.#options)
    this.spent = addUsage(this.spent, tried.usage)
    if (tried.kind === 'cancelled') return { kind: 'cancelled' }
    if (tried.kind === 'failed') return this.#afterFailure(tried)
    await this.#tellSuccess()
    return { kind: 'replied', reply: tried.reply }
  }

  async #afterFailure({ error }: Failed): Promise<Ended | undefined> {
    const { clock, warn } = this.#ports
    const toldMs = error.retryAfterMs ?? 0
    const until = isAboutQuota(error) && toldMs > 0 ? await this.#tellBlocked(error, toldMs) : clock.now() + toldMs
    if (!isRetried(error)) return { kind: 'failed', code: error.code === 'model/auth' ? 'auth' : 'model', error }
    if (this.#isTooLong(toldMs)) return { kind: 'park', until, reason: describeError(error) }
    if (this.#failures === LIMITS.modelRetries) return { kind: 'failed', code: 'model', error }
    const waitMs = this.#backoffMs(toldMs)
    this.#failures += 1
    warn(`${this.#model.id}: ${error.message}; try ${this.#failures + 1} in ${waitMs} ms`)
    this.#options.onRetry?.({ error, waitMs })
    await this.#wait(waitMs)
    return undefined
  }

  #backoffMs(toldMs: number): number {
    const baseMs = LIMITS.modelFirstWaitMs * 2 ** this.#failures
    return Math.max(baseMs, toldMs) + Math.floor(baseMs * LIMITS.modelJitter * this.#ports.random.fraction())
  }

  #isTooLong(waitMs: number): boolean {
    return waitMs > LIMITS.modelWaitMs || (waitMs > 0 && this.#waitedMs + waitMs > LIMITS.modelWaitsMs)
  }

  async #wait(waitMs: number): Promise<void> {
    this.#waitedMs += waitMs
    await sleep(this.#ports.clock, waitMs, this.#options.signal)
  }

  async #askQuota(): Promise<QuotaAnswer> {
    const { store } = this.#ports
    const [quota, held] = [this.#model.quota, this.#slot]
    const ask = async () => (await store.read(seeQuota, quota, held)) ?? (await store.apply(waitFor, quota, held))
    return (await this.#orWarn(ask)) ?? { kind: 'go' }
  }

  async #tellBlocked(error: ModelError, afterMs: number): Promise<Instant> {
    const { store, clock } = this.#ports
    this.#slot = undefined
    const reason = error.code === 'model/rate-limit' ? 'rate limit of the provider' : 'the provider is overloaded'
    const blocked = await this.#orWarn(() => store.apply(blockQuota, this.#model.quota, afterMs, reason))
    return blocked?.blockedUntil ?? clock.now() + afterMs
  }

  async #tellSuccess(): Promise<void> {
    const slot = this.#slot
    if (slot !== undefined) await this.#orWarn(() => this.#ports.store.apply(quotaSucceeded, this.#model.quota, slot))
  }

  // What is known of a quota is advice. A database that fails here must not cost a reply that is already paid.
  async #orWarn<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      this.#ports.warn(`the quota ${this.#model.quota} could not be looked after: ${describeError(error)}`)
      return undefined
    }
  }
}
