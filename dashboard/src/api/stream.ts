import { openStream } from './client.ts'
import type { Event, TextPart } from './shapes.ts'

export type Frame =
  | { readonly kind: 'open' }
  | { readonly kind: 'event'; readonly data: Event }
  | { readonly kind: 'text'; readonly data: TextPart }

/** The daemon speaks at least every 15 s; a connection that has been silent for three times that is dead. */
const SILENCE_MS = 45_000

/** The events after a number. Ends when the daemon does; whoever reads it begins again where it was. */
export async function* follow(after: number, signal: AbortSignal): AsyncGenerator<Frame> {
  const stop = new AbortController()
  const end = () => stop.abort()
  signal.addEventListener('abort', end, { once: true })
  let timer = 0
  const alive = () => {
    clearTimeout(timer)
    timer = window.setTimeout(end, SILENCE_MS)
  }
  try {
    alive()
    const { body } = await openStream(after, stop.signal)
    if (body === null) return
    yield { kind: 'open' }
    yield* framesOf(body, alive)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
    end()
  }
}

async function* framesOf(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<Frame> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    alive()
    const frames = (rest + decoder.decode(value, { stream: true })).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const parsed = frameOf(frame)
      if (parsed !== undefined) yield parsed
    }
  }
}

function frameOf(frame: string): Frame | undefined {
  const fields = new Map(frame.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]))
  const data = fields.get('data')
  if (data === undefined) return undefined
  return fields.get('event') === 'text'
    ? { kind: 'text', data: JSON.parse(data) as TextPart }
    : { kind: 'event', data: JSON.parse(data) as Event }
}
