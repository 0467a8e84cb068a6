import type { Clock } from '../base/clock.ts'
import type { Randomness } from '../base/ids.ts'
import { Notifier } from '../notify/notifier.ts'
import type { NotifierOptions } from '../notify/notifier.ts'
import type { Store } from '../store/store.ts'
import type { Calls } from './functions/calls.ts'
import type { ClockTrust } from './history/clock-trust.ts'
import type { Keeper } from './history/keeper.ts'
import { Scheduler } from './scheduler.ts'
import { Waker } from './wake.ts'
import type { WakerOptions } from './wake.ts'

export interface WatchOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly warn: (message: string) => void
  /** Our own threads: they get a run. */
  readonly wakeThreads: () => Promise<void>
  /** Given to the one that wakes idle sessions: a daemon. */
  readonly wakes?: Pick<WakerOptions, 'commands' | 'env'>
  /** Given to the one that tells people outside what needs them: a daemon. */
  readonly notifies?: Pick<NotifierOptions, 'channels' | 'window'>
  /** Given to one that forgets what is old: a daemon. */
  readonly keeper?: Pick<Keeper, 'look' | 'stop'>
  /** Hears how late after its due instant a schedule was fired here. */
  readonly onFired?: ((lateMs: number) => void) | undefined
  /** Places for what is fired here. */
  readonly calls?: Pick<Calls, 'reserve' | 'fill'>
}

/** What is looked after besides the runs that are carried out: whom to wake, whom to tell, what is due, what is old. */
export class Watch {
  readonly #options: WatchOptions
  readonly #waker: Waker | undefined
  readonly #notifier: Notifier | undefined
  #scheduler: Scheduler | undefined

  constructor(options: WatchOptions) {
    this.#options = options
    const { wakes, notifies } = options
    this.#waker = wakes === undefined ? undefined : new Waker({ ...options, ...wakes })
    this.#notifier = notifies === undefined ? undefined : new Notifier({ ...options, ...notifies })
  }

  /** From now on what is due is acted on. */
  schedule(): void {
    this.#scheduler ??= new Scheduler(this.#options)
    void this.#scheduler.look()
  }

  /** Never throws. An address that does not answer is not waited for. */
  async look(trust: Pick<ClockTrust, 'holds'>): Promise<void> {
    await this.#waker?.look()
    void this.#notifier?.look()
    void this.#scheduler?.look()
    void this.#options.keeper?.look(trust)
  }

  async stop(): Promise<void> {
    await this.#waker?.stop()
    await this.#notifier?.stop()
    await this.#options.keeper?.stop()
    await this.#scheduler?.stop()
  }
}
