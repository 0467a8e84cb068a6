import { matchesGlob, posix } from 'node:path'

import type { Predicate } from './predicate.ts'

/* How a condition is read where it denies or asks: of everything that the same thing can be written as. */

/** Small and large letters, and the ways to write one, make no difference. */
const fold = (text: string) => text.normalize('NFKC').toLowerCase().trimStart()
const foldWhole = (text: string) => fold(text).trimEnd()

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? `${value}` : undefined

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** It, and everything in it. Without recursion: how deep it is, a model says. */
function partsOf(value: unknown): readonly unknown[] {
  const parts = [value]
  for (const part of parts) if (isObject(part)) for (const inner of Object.values(part)) parts.push(inner)
  return parts
}

export function holdsWidely(predicate: Predicate, value: unknown): boolean {
  const parts = partsOf(value)
  const isSome = (test: (text: string) => boolean) =>
    parts.some((part) => {
      const text = textOf(part)
      return text !== undefined && test(text)
    })
  if ('equals' in predicate) return parts.some((part) => isAlike(part, predicate.equals))
  if ('oneOf' in predicate) return parts.some((part) => predicate.oneOf.some((each) => isAlike(part, each)))
  if ('prefix' in predicate) return isSome((text) => fold(text).startsWith(fold(predicate.prefix)))
  if ('path' in predicate) return isSome((text) => mayBeIn(predicate.path, text))
  const lists = typeof value === 'string' ? [value.trim().split(/\s+/)] : parts.filter((part) => Array.isArray(part))
  return lists.some((list) => beginsWith(list, predicate.words))
}

/** A number is its text. */
function isAlike(a: unknown, b: unknown): boolean {
  if (!isObject(a) || !isObject(b)) return !isObject(a) && !isObject(b) && foldWhole(String(a)) === foldWhole(String(b))
  const [own, others] = [Object.entries(a), new Map<string, unknown>(Object.entries(b))]
  if (Array.isArray(a) !== Array.isArray(b) || own.length !== others.size) return false
  return own.every(([key, value]) => others.has(key) && isAlike(value, others.get(key)))
}

/** A program may be named by its path. */
const beginsWith = (list: readonly unknown[], words: readonly string[]) =>
  words.every((word, index) => {
    const said = list[index]
    return isAlike(said, word) || (index === 0 && typeof said === 'string' && isAlike(posix.basename(said), word))
  })

/** A name that begins with a dot is one like others, which globs do not think. */
const undotted = (text: string) => text.replaceAll(/(^|[/{,(|[])\./g, '$1\uE000')

/** Longer than any path is: whatever it means, it is none that somebody allowed. */
const LONGEST_PATH = 4_096

/** Below which folder it stands is not known here: below any. */
function mayBeIn(glob: string, text: string): boolean {
  if (text.length > LONGEST_PATH) return true
  const path = posix.normalize(foldWhole(text).replaceAll('\\', '/'))
  const isRelative = !/^(?:[/~]|[a-z]+:)/.test(path)
  const bare = path.replace(/^(?:\.\.\/|\/)+/, '').replace(/\/$/, '')
  return globsOf(foldWhole(glob), isRelative).some(
    (each) => matchesGlob(bare, each) || matchesGlob(undotted(bare), undotted(each)),
  )
}

/** A folder is what is in it. An absolute glob may name folders above the one from which a relative path goes. */
function globsOf(glob: string, isRelative: boolean): string[] {
  const whole = posix.normalize(glob).replace(/\/$/, '/**')
  const bare = whole.replace(/^(?:~|[a-z]:)?\/+/, '')
  const parts = isRelative && bare !== whole ? bare.split('/') : []
  const below = parts.map((_, index) => parts.slice(index).join('/')).filter((rest) => /^[^/*?[{(]+(?:\/|$)/.test(rest))
  return [`**/${bare}`, ...below].flatMap((each) => [each, each.replace(/\/\*\*$/, '')])
}
