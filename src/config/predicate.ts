import { PREDICATES } from '../actions/predicate.ts'
import type { Predicate } from '../actions/predicate.ts'
import { readList, readRecord, readText } from './read.ts'
import type { Reader } from './read.ts'

type Kind = (typeof PREDICATES)[number]

const anything: Reader<unknown> = (value, path, complain) =>
  value === undefined
    ? complain(path, 'is nothing', 'write a text, a number, true, false, null, a list or an object')
    : value

const readSome =
  <T>(read: Reader<T>): Reader<readonly T[]> =>
  (value, path, complain) =>
    Array.isArray(value) && value.length === 0
      ? complain(path, 'must not be empty', 'write at least one')
      : readList(value, path, complain, read)

/** A glob is of a path inside the folder where the tool works: one that climbs out of it would never match. */
const readGlob: Reader<string> = (value, path, complain) => {
  const glob = readText(value, path, complain)
  if (glob === undefined || !glob.split('/').includes('..')) return glob
  return complain(path, 'climbs out of its folder, so it would match nothing', 'write it from there, as "src/**"')
}

const VALUES: { readonly [K in Kind]: Reader<unknown> } = {
  equals: anything,
  oneOf: readSome(anything),
  prefix: readText,
  path: readGlob,
  words: readSome(readText),
}

const EXAMPLE = 'write { "argument": "path", "path": "src/**" } or { "argument": "to", "equals": "ann@example.org" }'

/** A condition on one argument: which, and exactly one way to look at it. */
export const readPredicate: Reader<Predicate> = (value, path, complain) => {
  const written = readRecord(value, ['argument', ...PREDICATES], path, complain)
  const argument = readText(written['argument'], [...path, 'argument'], complain)
  const kinds = PREDICATES.filter((kind) => Object.hasOwn(written, kind))
  const [kind, second] = kinds
  if (kind === undefined) return complain(path, 'does not say what its argument must be', EXAMPLE)
  if (second !== undefined)
    return complain([...path, second], `cannot stand beside "${kind}"`, 'write two conditions: all of them must hold')
  const wanted = VALUES[kind](written[kind], [...path, kind], complain)
  return argument === undefined || wanted === undefined ? undefined : ({ argument, [kind]: wanted } as Predicate)
}
