import type { Found, Matcher } from './matcher.ts'
import { isAnyUnresolved, mayBeUnresolved, unresolvedIn } from './nonce.ts'

const shown = ({ known, shape }: Found): string =>
  known === undefined ? `[secret: ${shape}]` : `[secret ${known.name}]`

/** What nobody may read is replaced by what it is. */
export function redact(text: string, matcher: Matcher): string {
  return replaced(withoutMissing(text), matcher, () => true)
}

/** Of a text that is JSON and must stay JSON: a match behind a lone backslash would leave that to what is put in. */
export function redactJson(json: string, matcher: Matcher): string {
  const text = withoutMissing(json)
  return replaced(text, matcher, ({ start }) => backslashesBefore(text, start) % 2 === 0)
}

/** How many values would be hidden. */
export const hiddenIn = (text: string, matcher: Matcher): number =>
  matcher.find(text).length + (mayBeUnresolved(text) ? (text.match(unresolvedIn())?.length ?? 0) : 0)

/**
 * Both are JSON. What a person was shown of the one comes back in what they made of it: there the hidden values are put in again.
 * Undefined: two different values were shown in the same words, or somebody had written those words himself, so nobody can tell what is
 * meant; a value must not come to stand where it was not before.
 */
export function putBack(original: string, edited: string, matcher: Matcher): string | undefined {
  const hidden = new Map<string, Set<string>>()
  for (const each of matcher.find(original)) {
    const values = hidden.get(shown(each)) ?? new Set()
    hidden.set(shown(each), values.add(original.slice(each.start, each.end)))
  }
  let whole = edited
  for (const [words, values] of hidden) {
    if (!whole.includes(words)) continue
    if (values.size > 1 || original.includes(words)) return undefined
    for (const value of values) whole = whole.replaceAll(words, () => value)
  }
  return whole
}

function replaced(text: string, matcher: Matcher, counts: (found: Found) => boolean): string {
  const found = matcher.find(text).filter(counts)
  if (found.length === 0) return text
  let [all, from] = ['', 0]
  for (const each of found) {
    all += text.slice(from, each.start) + shown(each)
    from = each.end
  }
  return all + text.slice(from)
}

/** What could not be put back here is shown by its name, too. */
function withoutMissing(text: string): string {
  if (!mayBeUnresolved(text)) return text
  return text.replace(unresolvedIn(), (_, __, body: string) => {
    const [kind, , name] = body.split(':')
    return kind === 'r' ? `[secret ${name}]` : '[secret: sealed elsewhere]'
  })
}

function backslashesBefore(text: string, at: number): number {
  let count = 0
  while (text[at - 1 - count] === '\\') count += 1
  return count
}

/** A value whose texts have names where something could not be put back. */
export function withNames<T>(value: T): T {
  if (!isAnyUnresolved()) return value
  if (typeof value === 'string') return withoutMissing(value) as T
  if (Array.isArray(value)) return value.map(withNames) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withNames(each)])) as T
}
