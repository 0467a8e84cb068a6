import type { RunId } from '../base/ids.ts'
import { findRun } from '../runs/run.ts'
import type { Store } from '../store/store.ts'
import { acknowledgeDelivery } from '../threads/delivery.ts'

interface Given {
  readonly delivery: string
  readonly runId: RunId | null
  /** The number of the newest call when it was handed out. */
  readonly before: number
}

/**
 * Deliveries that were answered to the client and of which nobody knows yet whether it has them. A call that begins after the
 * answer shows that it does: a client that had lost it would not go on. One that was under way beside it shows nothing. The
 * turn that came to its good end after the answer shows it too. Without either the messages come again when this process ends.
 */
export class Handed {
  readonly #store: Store
  #given: Given[] = []
  #calls = 0

  constructor(store: Store) {
    this.#store = store
  }

  /** A call has begun: whatever was handed out before it has come. */
  async begun(): Promise<void> {
    const call = (this.#calls += 1)
    for (const each of this.#given.filter(({ before }) => before < call)) await this.#acknowledge(each)
  }

  out(delivery: string, runId: RunId | null): void {
    this.#given.push({ delivery, runId, before: this.#calls })
  }

  forget(delivery: string): void {
    this.#given = this.#given.filter((each) => each.delivery !== delivery)
  }

  /** The client is gone. What its turn used before it ended well was seen. */
  async close(): Promise<void> {
    for (const each of this.#given) {
      const run = each.runId === null ? undefined : await this.#store.read(findRun, each.runId)
      if (run?.state === 'succeeded') await this.#acknowledge(each)
    }
  }

  async #acknowledge({ delivery, runId }: Given): Promise<void> {
    await this.#store.apply(acknowledgeDelivery, delivery, runId)
    this.forget(delivery)
  }
}
