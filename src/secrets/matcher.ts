import { SHAPES } from './shapes.ts'
import type { Shape } from './shapes.ts'

/** A secret whose value is known, as it may be written: `form` says how it was escaped. */
export interface KnownText {
  readonly name: string
  readonly form: Form
  readonly text: string
}

export type Form = 'raw' | 'json' | 'json2' | 'ascii' | 'uri'

/** Where in a text something secret is: a known value, or what has the shape of one. */
export interface Found {
  readonly start: number
  readonly end: number
  readonly known?: KnownText
  readonly shape?: string
}

interface Candidate {
  /** Where in the pattern the three characters are by which it was found. */
  readonly offset: number
  readonly literal: string
  readonly known?: KnownText
  readonly shape?: Shape
}

const BITS = 15
const MASK = (1 << BITS) - 1

const hash = (a: number, b: number, c: number): number => ((a * 1021 + b) * 253 + c) & MASK

/** How much of a text is looked at in one go; even, since it is read two by two. */
const WINDOW = 64 * 1024

/** A text as bytes, of characters beyond them the lower half: two of them are one number. One for all: nobody waits while reading. */
const bytes = Buffer.allocUnsafeSlow(WINDOW)
const twos = new Uint16Array(bytes.buffer, 0, WINDOW / 2)

/** Of the first two characters, as it comes out of the bytes on this machine. */
function pairOf(text: string): number {
  bytes.write(text, 0, 2, 'latin1')
  return twos[0]!
}

/** The next place that holds one of these pairs; beyond the last one: none does. By itself, since nearly all of the time goes here. */
function next(pairs: Uint8Array, from: number, last: number): number {
  let two = from
  while (two <= last && pairs[twos[two]!] === 0) two += 1
  return two
}

/**
 * Finds known values and shapes in one pass. It looks at every second place: each pattern is entered under two neighbouring places of
 * it, so one of them is met, wherever the pattern begins. First at two characters, read as one number: few pairs begin anything
 * here. Then at three, then at the pattern. That costs half a nanosecond a character, a thirtieth of one regular expression for all of
 * them (bench/secrets); asking the text for one character after the other would cost five times as much.
 */
export class Matcher {
  readonly #pairs = new Uint8Array(1 << 16)
  readonly #slots = new Uint16Array(1 << BITS)
  readonly #lists: Candidate[][] = [[]]

  constructor(known: readonly KnownText[], shapes: readonly Shape[] = SHAPES) {
    for (const each of known) this.#enter(each.text, { known: each })
    for (const shape of shapes) for (const literal of shape.at) this.#enter(literal, { shape })
  }

  /** In order, without overlaps. A known value inside of a shape is told by itself, with what is around it. */
  find(text: string): Found[] {
    let found: Found[] | undefined
    // What a shape has taken is not read as another one again: many beginnings in a row would be read to their common end each.
    let taken = 0
    const pairs = this.#pairs
    for (let from = 0; from < text.length; from += WINDOW) {
      bytes.write(text.length <= WINDOW ? text : text.slice(from, from + WINDOW), 0, 'latin1')
      const last = Math.min((text.length - 3 - from) >> 1, WINDOW / 2 - 1)
      for (let two = next(pairs, 0, last); two <= last; two = next(pairs, two + 1, last)) {
        const at = from + two * 2
        for (const candidate of this.#candidatesAt(text, at)) {
          const start = at - candidate.offset
          if (candidate.shape !== undefined && start < taken) continue
          const match = matchAt(text, start, candidate)
          if (match === undefined) continue
          if (candidate.shape !== undefined) taken = match.end
          ;(found ??= []).push(match)
        }
      }
    }
    return found === undefined ? NOTHING : apart(found)
  }

  /** Whether the literal beginning of anything is in the text: what follows may be a secret that has not ended. */
  begins(text: string): boolean {
    for (let at = 0, last = text.length - 3; at <= last; at += 1) {
      for (const { literal, offset } of this.#candidatesAt(text, at))
        if (text.startsWith(literal, at - offset)) return true
    }
    return false
  }

  #candidatesAt(text: string, at: number): readonly Candidate[] {
    const slot = this.#slots[hash(text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2))]!
    return this.#lists[slot]!
  }

  #enter(literal: string, what: Pick<Candidate, 'known' | 'shape'>): void {
    // With three characters only, the second place goes on into whatever may follow.
    if (literal.length === 3) for (const sign of FOLLOWING) this.#enterAt(literal, 1, literal.slice(1) + sign, what)
    const offset = literal.length === 3 ? 0 : rarest(literal)
    this.#enterAt(literal, offset, literal.slice(offset, offset + 3), what)
    if (literal.length > 3) this.#enterAt(literal, offset + 1, literal.slice(offset + 1, offset + 4), what)
  }

  #enterAt(literal: string, offset: number, three: string, what: Pick<Candidate, 'known' | 'shape'>): void {
    this.#pairs[pairOf(three)] = 1
    const key = hash(three.charCodeAt(0), three.charCodeAt(1), three.charCodeAt(2))
    if (this.#slots[key] === 0) this.#slots[key] = this.#lists.push([]) - 1
    this.#lists[this.#slots[key]!]!.push({ offset, literal, ...what })
  }
}

const NOTHING: Found[] = []

/** What a value can go on with. */
const FOLLOWING = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index))

/** The pairs of letters that texts in English and programs are full of. */
const COMMON = new Set(
  'th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ut ec ss un ai ta tr ns pl ld ee so ho ec rt ct et us'.split(
    ' ',
  ),
)

/** How seldom two characters stand together: letters in small are everywhere, signs, digits and capitals are not. */
const rarity = (two: string): number => (/^[a-z ]+$/.test(two) ? (COMMON.has(two) ? 0 : 1) : two[0] === two[1] ? 1 : 2)

/** Which neighbouring places to know it by. */
function rarest(literal: string): number {
  let [best, where] = [-1, 0]
  for (let at = 0; at + 4 <= Math.min(literal.length, 24); at += 1) {
    const score = rarity(literal.slice(at, at + 2)) + rarity(literal.slice(at + 1, at + 3))
    if (score > best) [best, where] = [score, at]
  }
  return where
}

const WORD = /[A-Za-z0-9]/

function matchAt(text: string, start: number, { literal, known, shape }: Candidate): Found | undefined {
  if (start < 0 || !text.startsWith(literal, start)) return undefined
  if (known !== undefined) return { start, end: start + literal.length, known }
  if (shape === undefined || (shape.alone === true && start > 0 && isInWord(text, start))) return undefined
  const { reads } = shape
  reads.lastIndex = start
  const match = reads.exec(text)
  if (match === null) return undefined
  return { start: start + (match.groups?.['before']?.length ?? 0), end: start + match[0].length, shape: shape.name }
}

/** `\n` and the like end in a letter that is not one of the word. */
function isInWord(text: string, start: number): boolean {
  if (!WORD.test(text[start - 1]!)) return false
  return !(text[start - 2] === '\\' && /[nrtbf]/.test(text[start - 1]!))
}

/** Known values first, the longest of those that begin together; of shapes what they leave over. */
function apart(found: Found[]): Found[] {
  const known = leftmost(found.filter((each) => each.known !== undefined))
  const shapes = leftmost(found.filter((each) => each.shape !== undefined))
  if (known.length === 0 || shapes.length === 0) return known.length === 0 ? shapes : known
  const parts = shapes.flatMap((shape) => without(shape, known))
  return [...known, ...parts].toSorted((a, b) => a.start - b.start)
}

/** What is left over of one that another cuts is no value that is known any more, and secret all the same. */
function leftmost(found: Found[]): Found[] {
  const sorted = found.toSorted((a, b) => a.start - b.start || b.end - a.end)
  let free = 0
  return sorted.flatMap((each) => {
    if (each.end <= free) return []
    const cut = each.start >= free ? each : { start: free, end: each.end, shape: each.shape ?? 'secret' }
    free = each.end
    return [cut]
  })
}

function without(shape: Found, known: readonly Found[]): Found[] {
  const inside = known.filter(({ start, end }) => start < shape.end && end > shape.start)
  const edges = [shape.start, ...inside.flatMap(({ start, end }) => [start, end]), shape.end]
  const parts: Found[] = []
  for (let index = 0; index < edges.length; index += 2) {
    const [start, end] = [edges[index]!, edges[index + 1]!]
    if (start < end) parts.push({ ...shape, start, end })
  }
  return parts
}
