import { matchesGlob, posix } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import { holdsWidely } from './wide.ts'

/** A condition on one parsed argument of a call, named by its path: `to`, `request.method`, `argv`. */
export type Predicate = { readonly argument: string } & (
  | { readonly equals: unknown }
  | { readonly oneOf: readonly unknown[] }
  /** A text that begins so. */
  | { readonly prefix: string }
  /** A path that a glob covers, whatever dots it is written with. */
  | { readonly path: string }
  /** A list of words that begins with these. */
  | { readonly words: readonly string[] }
)

export const PREDICATES = ['equals', 'oneOf', 'prefix', 'path', 'words'] as const

/** An allow holds of what is written so, to the letter. A deny or an ask holds of whatever could be meant by it, too. */
export type Reading = 'narrow' | 'wide'
export const readingOf = (decision: 'allow' | 'deny' | 'ask'): Reading => (decision === 'allow' ? 'narrow' : 'wide')

/** What is not there is under no condition, however it is read. */
export const holds = (predicate: Predicate, input: unknown, reading: Reading): boolean =>
  argumentsOf(input, predicate.argument, reading).some(
    (value) => holdsNarrowly(predicate, value) || (reading === 'wide' && holdsWidely(predicate, value)),
  )

function holdsNarrowly(predicate: Predicate, value: unknown): boolean {
  if ('equals' in predicate) return isDeepStrictEqual(value, predicate.equals)
  if ('oneOf' in predicate) return predicate.oneOf.some((each) => isDeepStrictEqual(value, each))
  if ('prefix' in predicate) return typeof value === 'string' && value.startsWith(predicate.prefix)
  if ('path' in predicate) return typeof value === 'string' && coversPath(predicate.path, value)
  return Array.isArray(value) && predicate.words.every((word, index) => value[index] === word)
}

/** Of the arguments itself: one that is undefined is not there, and what is no object has none that have names. */
export function hasOnly(named: readonly Pick<Predicate, 'argument'>[], input: unknown): boolean {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return false
  const names = argumentNames(named)
  return Object.entries(input).every(([name, value]) => value === undefined || names.has(name))
}

export const argumentNames = (named: readonly Pick<Predicate, 'argument'>[]): ReadonlySet<string> =>
  new Set(named.map(({ argument }) => argument.split('.')[0] ?? ''))

/** By its own keys only: nothing that every object has is an argument. Read widely, of everything in a list on the way. */
function argumentsOf(input: unknown, path: string, reading: Reading): readonly unknown[] {
  let values = [input]
  for (const key of path.split('.')) {
    const holders = reading === 'wide' ? values.concat(values.filter((value) => Array.isArray(value)).flat()) : values
    values = holders.flatMap((holder) =>
      typeof holder === 'object' && holder !== null && Object.hasOwn(holder, key)
        ? [(holder as Record<string, unknown>)[key]]
        : [],
    )
  }
  return values.filter((value) => value !== undefined)
}

/** A path that climbs out of where it starts is covered by nothing. */
function coversPath(glob: string, path: string): boolean {
  const normal = posix.normalize(path)
  if (normal === '..' || normal.startsWith('../') || path.includes('\0')) return false
  return matchesGlob(normal, posix.normalize(glob))
}

/** How narrow it is, for "the most specific rule wins". */
export const narrowness = (predicate: Predicate): number =>
  'equals' in predicate ? 4 : 'oneOf' in predicate ? 3 : 'words' in predicate ? 2 : 1
