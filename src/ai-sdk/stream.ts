import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'

export type Part = LanguageModelV4StreamPart
type Finish = Extract<Part, { type: 'finish' }>

/** They say nothing yet: a try that failed behind them can be made again. */
const SAYS_NOTHING: readonly string[] = ['stream-start', 'response-metadata', 'ping', 'raw']

/**
 * A streamed answer on its way to its reader. Words go through as they come. From the first tool call on everything is held back
 * until the answer is recorded: a tool that is used because of an answer which nobody has kept could be used twice.
 */
export class Streaming {
  readonly readable: ReadableStream<Part>
  isBegun = false
  #controller: ReadableStreamDefaultController<Part> | undefined
  #held: Part[] = []
  #isLive = false
  readonly #stop = new AbortController()
  readonly #begun = Promise.withResolvers<void>()

  constructor() {
    this.readable = new ReadableStream<Part>({
      start: (controller) => void (this.#controller = controller),
      cancel: () => this.#stop.abort(new DOMException('its reader has gone', 'AbortError')),
    })
  }

  /** Aborted when nobody reads it any more. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** One try, to its end. */
  async hear(parts: ReadableStream<Part>): Promise<{ readonly reply: readonly Part[]; readonly finish?: Finish }> {
    const heard: Part[] = []
    let finish: Finish | undefined
    let holds = false
    this.#held = []
    for await (const part of parts) {
      if (part.type === 'error') throw part.error
      if (part.type === 'finish') finish = part
      if (part.type !== 'raw' && part.type !== 'ping') add(heard, part)
      holds ||= part.type === 'tool-call' || part.type === 'finish'
      this.#hold(part)
      if (!holds && !SAYS_NOTHING.includes(part.type)) this.#letGo()
    }
    this.#isLive = true
    return { reply: heard, ...(finish === undefined ? {} : { finish }) }
  }

  readonly #hold = (part: Part) => void this.#held.push(part)

  #letGo(): void {
    this.isBegun = true
    for (const part of this.#held.splice(0)) this.#pass(part)
    this.#begun.resolve()
  }

  #pass(part: Part): void {
    if (!this.#stop.signal.aborted) this.#controller?.enqueue(part)
  }

  /** It is recorded: the rest of it, or, from the record, the whole. */
  end(recorded: readonly Part[]): void {
    for (const part of this.#isLive ? this.#held.splice(0) : recorded) this.#pass(part)
    this.#begun.resolve()
    if (!this.#stop.signal.aborted) this.#controller?.close()
  }

  /** Resolves when there is something to read. What fails before that fails the call, what fails later is part of the stream. */
  async begins(ended: Promise<void>): Promise<void> {
    const told = ended.catch((error: unknown) => {
      if (!this.isBegun) throw error
      this.#pass({ type: 'error', error })
      if (!this.#stop.signal.aborted) this.#controller?.close()
    })
    await Promise.race([this.#begun.promise, told])
  }
}

/** Neighbouring bits of the same text are one. */
function add(heard: Part[], part: Part): void {
  const last = heard.at(-1)
  if (last !== undefined && isDelta(last) && isDelta(part) && last.type === part.type && last.id === part.id)
    heard[heard.length - 1] = { ...last, delta: `${last.delta}${part.delta}` }
  else heard.push(part)
}

type Delta = Extract<Part, { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' }>

const isDelta = (part: Part): part is Delta =>
  (part.type === 'text-delta' || part.type === 'reasoning-delta' || part.type === 'tool-input-delta') &&
  part.providerMetadata === undefined
