import type { Clock } from '../base/clock.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { jsonText } from '../base/visible.ts'
import { lastEventSeq } from '../events/event.ts'
import { forgottenThrough, refuseForgotten } from '../events/retention.ts'
import type { Store } from '../store/store.ts'
import { EventPages } from './event-pages.ts'
import type { LiveTexts, TextPart } from './live-text.ts'

export interface StreamPorts {
  readonly store: Store
  readonly clock: Clock
  readonly texts: LiveTexts
  readonly warn: (text: string) => void
}

interface ReaderPorts extends StreamPorts {
  readonly pages: EventPages
}

/**
 * Server-sent events, from any number on. Nothing is kept for a reader but that number: what it has not taken is read
 * from the store when it comes for more, so a slow reader holds one page and a stopped one is cut off.
 */
export class EventStreams {
  readonly #ports: ReaderPorts
  readonly #open = new Set<AbortController>()

  constructor(ports: StreamPorts) {
    this.#ports = { ...ports, pages: new EventPages(ports.store) }
  }

  /** `cut` breaks the connection under a reader that takes nothing; `isGood` says whether it may still read. */
  async open(after: number, cut: () => void, isGood: () => Promise<boolean>): Promise<Response> {
    if (this.#open.size >= LIMITS.eventStreams) {
      throw new HoldfastError('capacity/streams', `${LIMITS.eventStreams} event streams are open`, {
        remedy: 'close one, then try again',
        retry: { afterMs: 5_000 },
      })
    }
    const stop = new AbortController()
    this.#open.add(stop)
    stop.signal.addEventListener('abort', () => this.#open.delete(stop), { once: true })
    try {
      await this.#refuseFuture(after)
    } catch (error) {
      stop.abort()
      throw error
    }
    const body = asBody(frames(this.#ports, after, stop.signal, isGood), stop, cut, this.#ports)
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' } })
  }

  get count(): number {
    return this.#open.size
  }

  /** Each stream ends after the frame it is writing; its reader resumes with the next daemon. */
  end(): void {
    for (const stop of this.#open) stop.abort()
  }

  /** A number that nobody was given comes from another database; waiting for it would pass over what happens until then. */
  async #refuseFuture(after: number): Promise<void> {
    const { seq } = await this.#ports.store.read(lastEventSeq)
    refuseForgotten(after, await this.#ports.store.read(forgottenThrough))
    if (after <= seq) return
    throw new HoldfastError('events/ahead', `the last event is ${seq}; there is no ${after} yet`, {
      remedy: 'the number comes from another database: begin again with after=0, or from a snapshot',
    })
  }
}

async function* frames(
  ports: ReaderPorts,
  after: number,
  signal: AbortSignal,
  isGood: () => Promise<boolean>,
): AsyncGenerator<string> {
  const news = new News(ports, signal)
  const newTexts = ports.texts.reader()
  let seq = after
  try {
    yield 'retry: 1000\n\n'
    while (!signal.aborted) {
      // Texts first: what a step records was said before it.
      const { events, frames: told } = news.takeChanged() ? await ports.pages.after(seq) : NOTHING
      const texts = newTexts()
      // A token that was revoked meanwhile sees nothing of what came after.
      if (events.length + texts.length > 0 && !(await isGood())) return
      seq = events.at(-1)?.seq ?? seq
      if (events.length === LIMITS.eventsTogether) news.change()
      for (const event of events)
        if (event.runId !== null && event.type === 'run.finished') ports.texts.forget(event.runId)
      if (events.length + texts.length > 0) yield `${texts.map(textFrame).join('')}${told}`
      else if ((await news.next()) === 'silence') yield ': still here\n\n'
    }
  } finally {
    news.close()
  }
}

const NOTHING = { events: [], frames: '' } as const

/** Without an id: what is only being said has no place in the order of what happened. */
const textFrame = (part: TextPart) => `event: text\ndata: ${jsonText(part)}\n\n`

/** Wakes one stream. Subscribed as long as it is open, so that nothing falls between a look and the wait after it. */
class News {
  readonly #ports: ReaderPorts
  readonly #signal: AbortSignal
  readonly #stops: readonly (() => void)[]
  #changed = true
  #said = false
  #wake: ((what: 'news' | 'silence') => void) | undefined

  constructor(ports: ReaderPorts, signal: AbortSignal) {
    this.#ports = ports
    this.#signal = signal
    // What was kept while nobody listened may be old.
    ports.pages.forget()
    const heard = () => this.#wake?.('news')
    signal.addEventListener('abort', heard, { once: true })
    this.#stops = [
      ports.store.onChange(() => {
        ports.pages.forget()
        this.change()
      }),
      ports.texts.onText(() => {
        this.#said = true
        heard()
      }),
      () => signal.removeEventListener('abort', heard),
    ]
  }

  change(): void {
    this.#changed = true
    this.#wake?.('news')
  }

  takeChanged(): boolean {
    const changed = this.#changed
    this.#changed = false
    this.#said = false
    return changed
  }

  /** Silence is a reason to look, too: a notification may have been lost. */
  next(): Promise<'news' | 'silence'> {
    if (this.#changed || this.#said || this.#signal.aborted) return Promise.resolve('news')
    return new Promise((resolve) => {
      const disarm = this.#ports.clock.after(LIMITS.heartbeatMs, () => {
        this.#ports.pages.forget()
        this.#changed = true
        this.#wake?.('silence')
      })
      this.#wake = (what) => {
        disarm()
        this.#wake = undefined
        resolve(what)
      }
    })
  }

  close(): void {
    for (const stop of this.#stops) stop()
    this.#wake?.('news')
  }
}

/** Pulled by the connection: a frame is made when the one before it has been taken. */
function asBody(
  source: AsyncGenerator<string>,
  stop: AbortController,
  cut: () => void,
  { clock, warn }: StreamPorts,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let disarm = () => {}
  let gone = false
  const take = async (): Promise<string | undefined> => {
    try {
      const { done, value } = await source.next()
      return done === true ? undefined : value
    } catch (error) {
      warn(`an event stream ends: ${describeError(error)}`)
      return undefined
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        disarm()
        const frame = await take()
        if (gone) return
        if (frame === undefined) {
          stop.abort()
          return controller.close()
        }
        controller.enqueue(encoder.encode(frame))
        disarm = clock.after(LIMITS.readerStallMs, cut)
      },
      cancel() {
        gone = true
        disarm()
        stop.abort()
        void source.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
