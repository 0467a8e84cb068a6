import { matchesGlob, posix } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

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

export function holds(predicate: Predicate, input: unknown): boolean {
  const value = argumentOf(input, predicate.argument)
  if (value === undefined) return false
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

/** By its own keys only: nothing that every object has is an argument. */
function argumentOf(input: unknown, path: string): unknown {
  let value = input
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
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
