import type { Clock } from '../base/clock.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import { newMessageId, newRunId, newThreadId } from '../base/ids.ts'
import type { Randomness, ScheduleId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import {
  againBroken,
  dueAgain,
  dueSchedules,
  fireAgain,
  fireBroken,
  fireSchedule,
  untilNext,
} from '../schedule/fire.ts'
import type { Fired } from '../schedule/fire.ts'
import type { ClaimedCall } from '../runs/call.ts'
import type { Store } from '../store/store.ts'
import type { Calls } from './functions/calls.ts'

export interface SchedulerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly warn: (message: string) => void
  /** Hears how late after its due instant a schedule was fired here. */
  readonly onFired?: ((lateMs: number) => void) | undefined
  /** Places for calls of this program's functions: what is fired here is begun here, by the same commit, if one is free. */
  readonly calls?: Pick<Calls, 'reserve' | 'fill'>
}

const isAboutTime = (topic: string) => /^(schedule|occurrence|thread)\./.test(topic)

/**
 * Acts on what is due, with one timer for the next instant. Any number of them may look at the same store: an instant is
 * fired by the one that moves its schedule on. Harmless if it is dropped: the next look finds the same.
 */
export class Scheduler {
  readonly #options: SchedulerOptions
  readonly #stopListening: () => void
  #cancelTimer: (() => void) | undefined
  #looking: Promise<void> | undefined
  #lookAgain = false
  #lookedAt = Number.NEGATIVE_INFINITY
  /** By the monotonic clock, as the timer. */
  #wakesAt = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(options: SchedulerOptions) {
    this.#options = options
    // Somebody may have added, changed or resumed one that comes before what the timer waits for.
    this.#stopListening = options.store.onChange((topics) => {
      if (topics === undefined || [...topics].some(isAboutTime)) this.#soon()
    })
  }

  #soon(): void {
    if (this.#stopped) return
    if (this.#looking !== undefined) return void (this.#lookAgain = true)
    const soon = this.#lookedAt + LIMITS.scheduleLookMs
    // What it waits for anyway must not come later because of it.
    if (soon < this.#wakesAt) this.#arm(soon - this.#options.clock.monotonicMs())
  }

  /** Fires everything that is due, and sets the timer for what comes next. Never throws: it is tried again anyway. */
  look(): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#wakesAt = Number.POSITIVE_INFINITY
    return (this.#looking ??= this.#lookUntilDone())
  }

  async #lookUntilDone(): Promise<void> {
    const { store, clock, warn } = this.#options
    let waitMs: number = LIMITS.scheduleSleepMs
    let [fired, isBusy] = [0, false]
    try {
      do {
        this.#lookAgain = false
        this.#lookedAt = clock.monotonicMs()
        const due = await this.#fireDue()
        fired = due.filter((kind) => kind === 'fired').length
        isBusy ||= due.length > 0
        waitMs = (await store.read(untilNext)).waitMs ?? LIMITS.scheduleSleepMs
      } while ((this.#lookAgain || fired > 0) && waitMs <= 0 && !this.#stopped)
    } catch (error) {
      warn(`what is due will be looked at again: ${describeError(error)}`)
      waitMs = LIMITS.changePollMs
    }
    // Before the timer: what changes from here on must not be taken for something that this look has seen.
    this.#looking = undefined
    if (this.#stopped) return
    const nextMs = this.#lookAgain ? Math.min(waitMs, LIMITS.scheduleLookMs) : waitMs
    // Where they come one after the other, those of a moment are fired together. What another is about to fire is so soon.
    this.#arm(isBusy ? Math.max(nextMs, LIMITS.scheduleGatherMs) : nextMs)
  }

  #arm(waitMs: number): void {
    this.#cancelTimer?.()
    const ms = Math.min(Math.max(waitMs, 0), LIMITS.scheduleSleepMs)
    this.#wakesAt = this.#options.clock.monotonicMs() + ms
    this.#cancelTimer = this.#options.clock.after(ms, () => void this.look())
  }

  /** Side by side: they share a commit, and one that fails or retries delays no other. What became of each. */
  async #fireDue(): Promise<readonly string[]> {
    const { store } = this.#options
    const schedules = await store.read(dueSchedules, LIMITS.firingsTogether)
    const again = await store.read(dueAgain, LIMITS.firingsTogether)
    return Promise.all([
      ...schedules.map(({ id, nextAt, calls }) =>
        this.#try(
          () => this.#fire(id, nextAt, calls),
          (error) => store.apply(fireBroken, id, nextAt, error),
        ),
      ),
      ...again.map(({ id }) =>
        this.#try(
          () => store.apply(fireAgain, id, this.#ids()),
          (error) => store.apply(againBroken, id, error),
        ),
      ),
    ])
  }

  async #fire(id: ScheduleId, dueAt: number, called: string | undefined): Promise<Fired> {
    const { store, clock, onFired, calls } = this.#options
    const place = called === undefined ? undefined : calls?.reserve(called)
    let call: ClaimedCall | undefined
    try {
      const fired = await store.apply(fireSchedule, id, dueAt, {
        ...this.#ids(),
        ...(place === undefined ? {} : { place }),
      })
      if (fired.kind !== 'fired') return fired
      call = fired.call
      onFired?.(clock.now() - dueAt)
      return fired
    } finally {
      if (place !== undefined) calls?.fill(call)
    }
  }

  async #try(
    fire: () => Promise<{ kind: string }>,
    giveUp: (error: string) => Promise<{ kind: string }>,
  ): Promise<string> {
    try {
      return (await fire()).kind
    } catch (error) {
      // The store's own trouble is not the schedule's.
      if (error instanceof HoldfastError && error.code.startsWith('store/')) throw error
      this.#options.warn(`a schedule could not be fired: ${describeError(error)}`)
      return (await giveUp(describeError(error))).kind
    }
  }

  #ids() {
    const { random } = this.#options
    return { threadId: newThreadId(random), runId: newRunId(random), messageId: newMessageId(random) }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#stopListening()
    this.#cancelTimer?.()
    await this.#looking
  }
}
