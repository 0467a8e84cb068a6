import type { Matcher } from './matcher.ts'
import type { Secrets } from './secrets.ts'
import { SHAPES } from './shapes.ts'

/** Longer than any shape that is one word; what is held of a line is at most this. */
const HELD_LINE = 4_096
/** Longer than any private key in its text form. */
const HELD_KEY = 16_384
const KEY_BEGINS = '-----BEGIN '

/** What finds secrets, and how they begin. */
export interface Finder {
  readonly matcher: Matcher
  readonly beginnings: readonly string[]
}

/**
 * Where a text that goes on may be cut: what may be the beginning of a secret is held until it is known what it is, the end of a line in
 * which something began, a private key that has not ended. Everything else goes on at once.
 */
function cutOf(text: string, { matcher, beginnings }: Finder): number {
  let cut = text.length - beginningAtEnd(text, beginnings)
  const line = Math.max(text.lastIndexOf('\n') + 1, text.length - HELD_LINE)
  if (line < cut && matcher.begins(text.slice(line))) cut = line
  const key = text.lastIndexOf(KEY_BEGINS)
  const isOpen = key !== -1 && !text.includes('-----END ', key)
  if (isOpen && text.length - key < HELD_KEY) cut = Math.min(cut, key)
  return cut === text.length ? cut : outside(text, cut, matcher)
}

/** Not in the middle of what was found: what is left of it would not be found again. */
function outside(text: string, cut: number, matcher: Matcher): number {
  const from = Math.max(0, cut - HELD_KEY)
  const found = matcher.find(text.slice(from)).find(({ start, end }) => from + start < cut && cut < from + end)
  return found === undefined ? cut : from + found.start
}

/** A stream of text, changed where there is something secret in it, wherever it is cut. */
export class DiscreetStream {
  readonly #finder: () => Finder
  readonly #change: (text: string) => string
  #held = ''

  constructor(finder: () => Finder, change: (text: string) => string) {
    this.#finder = finder
    this.#change = change
  }

  write(more: string): string {
    const text = this.#held + more
    const cut = cutOf(text, this.#finder())
    this.#held = text.slice(cut)
    return this.#change(text.slice(0, cut))
  }

  /** What is left when nothing more will come. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return this.#change(rest)
  }
}

/** Seals bytes as they come. */
export class StreamSealer {
  readonly #stream: DiscreetStream

  constructor({ known, bytes }: Secrets) {
    const finder = () => ({ matcher: known.byteMatcher, beginnings: known.beginnings })
    this.#stream = new DiscreetStream(finder, (text) => bytes.seal(text))
  }

  write(chunk: Uint8Array): Buffer {
    return Buffer.from(this.#stream.write(latin1(chunk)), 'latin1')
  }

  end(): Buffer {
    return Buffer.from(this.#stream.end(), 'latin1')
  }
}

const latin1 = (chunk: Uint8Array): string =>
  Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')

/** How much of the end is the beginning of one of these. */
function beginningAtEnd(text: string, beginnings: readonly string[]): number {
  let longest = 0
  for (const beginning of beginnings) {
    for (let length = Math.min(beginning.length - 1, text.length); length > longest; length -= 1) {
      if (text.endsWith(beginning.slice(0, length))) longest = length
    }
  }
  return longest
}

/** The way back. A token that was cut by a crash is left out. */
export class StreamOpener {
  readonly #secrets: Secrets
  #held = ''

  constructor(secrets: Secrets) {
    this.#secrets = secrets
  }

  write(chunk: Uint8Array): Buffer {
    const text = this.#held + latin1(chunk)
    const cut = cutOfToken(text)
    this.#held = text.slice(cut)
    return Buffer.from(this.#secrets.bytes.open(text.slice(0, cut)), 'latin1')
  }

  end(): Buffer {
    const rest = this.#held
    this.#held = ''
    return Buffer.from(rest.startsWith('~hf') ? '' : rest, 'latin1')
  }
}

/** Where a token begins that does not end here. Every mark in a sealed text is one of ours, so each has an end. */
function cutOfToken(text: string): number {
  let at = 0
  for (;;) {
    const mark = text.indexOf('~hf', at)
    if (mark === -1) break
    const end = text.indexOf('~', mark + 3)
    if (end === -1) return mark
    at = end + 1
  }
  if (text.endsWith('~h')) return text.length - 2 >= at ? text.length - 2 : text.length
  return text.endsWith('~') && text.length - 1 >= at ? text.length - 1 : text.length
}

interface Ends {
  readonly head: string
  readonly tail: string
  readonly truncated: boolean
}

/** A word that is as long as half a secret, or the rest of a private key. */
const CUT_WORD = /^[\w+/=.~-]{12,4096}/
const CUT_KEY = /^(?:[\w+/=\s]|-(?!----)){0,16384}-----END [A-Z0-9 ]{0,60}PRIVATE KEY[A-Z ]{0,10}-----/

/** Where a middle was left out, half of a secret may stand at either side of the gap, and would not be known for one. */
export function withoutHalves<E extends Ends>(ends: E, { known }: Secrets): E {
  if (!ends.truncated) return ends
  const { head, tail } = ends
  const finder = { matcher: known.matcher, beginnings: [...known.texts.map(({ text }) => text), ...STARTS] }
  const half = Math.max(0, ...known.texts.map(({ text }) => endingAtStart(tail, text)))
  const rest = tail.slice(Math.max(half, CUT_KEY.exec(tail)?.[0].length ?? 0)).replace(CUT_WORD, '')
  return { ...ends, head: head.slice(0, cutOf(head, finder)), tail: rest }
}

const STARTS = SHAPES.flatMap(({ at }) => at)

/** How much of the beginning is the end of this; a few characters are so by chance. */
function endingAtStart(text: string, whole: string): number {
  for (let length = Math.min(whole.length - 1, text.length); length >= 4; length -= 1) {
    if (text.startsWith(whole.slice(-length))) return length
  }
  return 0
}
