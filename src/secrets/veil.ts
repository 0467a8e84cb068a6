import { setVeil } from '../base/visible.ts'
import type { KnownSecrets } from './known.ts'
import { Matcher } from './matcher.ts'
import { hiddenIn, putBack, redact, redactJson } from './redact.ts'
import { SHAPES } from './shapes.ts'
import { DiscreetStream } from './stream.ts'

/** A process has one set of secrets, a test many; the oldest are let go. */
const MOST_SETS = 20

const sets: KnownSecrets[] = []
let matcher: Matcher | undefined

/**
 * From now on whatever leaves this process through `visible` and `jsonText` has these secrets hidden, and what has the shape of one.
 * One for the whole process: what it knows must not be told by any part of it, an error before the wiring included.
 */
export function drawVeil(known: KnownSecrets): void {
  sets.push(known)
  if (sets.length > MOST_SETS) sets.shift()
  known.onChange = () => (matcher = undefined)
  matcher = undefined
  setVeil({
    text: (text) => redact(text, current()),
    json: (json) => redactJson(json, current()),
    hidden: (text) => hiddenIn(text, current()),
    putBack: (original, edited) => putBack(original, edited, current()),
    stream: () => new DiscreetStream(finder, (text) => redact(text, current())),
  })
}

function current(): Matcher {
  matcher ??= new Matcher(sets.flatMap(({ texts }) => texts))
  return matcher
}

const finder = () => ({
  matcher: current(),
  beginnings: [...sets.flatMap(({ texts }) => texts.map(({ text }) => text)), ...SHAPES.flatMap(({ at }) => at)],
})
