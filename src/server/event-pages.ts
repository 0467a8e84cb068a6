import { LIMITS } from '../base/limits.ts'
import { jsonText } from '../base/visible.ts'
import { eventsAfter } from '../events/event.ts'
import type { Event } from '../events/event.ts'
import { viewEvent } from '../runs/view.ts'
import type { Store } from '../store/store.ts'

/** What comes after a number, and how it is written to readers. */
export interface EventPage {
  readonly events: readonly Event[]
  readonly frames: string
}

/**
 * Readers that have seen everything stand at the same number: what comes after it is read and put into words once for all of
 * them. One page is kept, and only until something is committed; so nobody is shown less than a look of its own would show.
 */
export class EventPages {
  readonly #store: Store
  #kept: { readonly after: number; readonly page: Promise<EventPage> } | undefined

  constructor(store: Store) {
    this.#store = store
  }

  after(seq: number): Promise<EventPage> {
    if (this.#kept?.after !== seq) this.#kept = { after: seq, page: this.#read(seq) }
    return this.#kept.page
  }

  /** There may be more by now. */
  forget(): void {
    this.#kept = undefined
  }

  async #read(seq: number): Promise<EventPage> {
    try {
      const events = await this.#store.read(eventsAfter, seq, LIMITS.eventsTogether)
      return { events, frames: events.map(eventFrame).join('') }
    } catch (error) {
      // The next who asks tries again.
      this.forget()
      throw error
    }
  }
}

const eventFrame = (event: Event) => `id: ${event.seq}\ndata: ${jsonText(viewEvent(event))}\n\n`
