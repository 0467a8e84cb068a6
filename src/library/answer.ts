import { HoldfastError } from '../base/errors.ts'
import type { RunView } from '../runs/view.ts'
import type { AgentEvent } from './event.ts'
import type { SentMessage } from './send.ts'

/** The way to an answer: its events, or just its end. Both are the same thing: waiting is draining. */
export interface Answering extends AsyncIterable<AgentEvent> {
  /** Known as soon as the message is on disk. */
  readonly sent: Promise<Omit<SentMessage, 'afterSeq'>>
  /** The run that answered, whatever became of it. */
  run(): Promise<RunView>
  /** The agent's words. Rejects when the run did not succeed. */
  text(): Promise<string>
}

type Follow = (stopped: AbortSignal) => AsyncGenerator<AgentEvent>

export function answering(
  follow: Follow,
  sending: Promise<SentMessage>,
  signal: AbortSignal | undefined,
  onEnd: () => void,
): Answering {
  // Whoever does not wait for the answer need not hear that it was never asked for.
  sending.catch(() => {})
  const events = new Events(follow, signal, onEnd)
  const run = async () => events.end ?? (await drained(events))
  return {
    sent: sending,
    [Symbol.asyncIterator]: () => events,
    run,
    text: async () => textOf(await run()),
  }
}

async function drained(events: Events): Promise<RunView> {
  for await (const event of events) if (event.type === 'finished') return event.run
  // Somebody listened for a while and left: from the beginning, then.
  return events.end ?? drained(events.again())
}

function textOf(run: RunView): string {
  if (run.state === 'succeeded') return (run.result as { text?: string } | undefined)?.text ?? ''
  const why = run.error === undefined ? '' : `: ${run.error}`
  const code = run.state === 'cancelled' ? 'run/cancelled' : `run/${run.code ?? 'failed'}`
  throw new HoldfastError(code, `run ${run.id} ${run.state === 'cancelled' ? 'was cancelled' : `failed${why}`}`, {
    remedy: `holdfast runs show ${run.id} has its steps and actions`,
  })
}

class Events implements AsyncIterableIterator<AgentEvent> {
  readonly #follow: Follow
  readonly #signal: AbortSignal | undefined
  readonly #onEnd: () => void
  readonly #events: AsyncGenerator<AgentEvent>
  end: RunView | undefined

  constructor(follow: Follow, signal: AbortSignal | undefined, onEnd: () => void) {
    this.#follow = follow
    this.#signal = signal
    this.#onEnd = onEnd
    this.#events = follow(signal ?? new AbortController().signal)
  }

  again(): Events {
    return new Events(this.#follow, this.#signal, this.#onEnd)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<AgentEvent>> {
    const next = await this.#events.next()
    if (next.done !== true && next.value.type === 'finished') {
      this.end = next.value.run
      this.#onEnd()
    }
    return next
  }

  return(): Promise<IteratorResult<AgentEvent>> {
    return this.#events.return(undefined)
  }
}
