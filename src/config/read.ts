import { parseDuration } from '../base/duration.ts'
import { describeError } from '../base/errors.ts'
import type { Path } from './json-text.ts'
import { suggest } from './problem.ts'
import type { Complain } from './problem.ts'

/*
 * Readers of one value each. What does not fit is complained about and read as absent, so that the rest is still looked
 * at; a configuration that was complained about is never used.
 */

export type JsonRecord = Readonly<Record<string, unknown>>
export type Reader<T> = (value: unknown, path: Path, complain: Complain) => T | undefined

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An object with these keys and no others. */
export function readRecord(value: unknown, known: readonly string[], path: Path, complain: Complain): JsonRecord {
  if (!isRecord(value)) return complain(path, 'must be an object', 'write { … }') ?? {}
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) complain([...path, key], 'is not a setting', suggest(key, known))
  }
  return value
}

/** An object whose keys are names. */
export function readNamed<T>(value: unknown, path: Path, complain: Complain, read: Reader<T>): Map<string, T> {
  if (!isRecord(value)) {
    complain(path, 'must be an object', 'write { "name": … }')
    return new Map()
  }
  const entries = Object.entries(value).map(([name, each]) => [name, read(each, [...path, name], complain)] as const)
  return new Map(entries.filter((entry): entry is readonly [string, T] => entry[1] !== undefined))
}

export function readList<T>(value: unknown, path: Path, complain: Complain, read: Reader<T>): T[] {
  if (!Array.isArray(value)) return complain(path, 'must be a list', 'write [ … ]') ?? []
  return value.map((each, index) => read(each, [...path, index], complain)).filter((each) => each !== undefined)
}

export const readText: Reader<string> = (value, path, complain) =>
  typeof value === 'string' && value.trim() !== ''
    ? value
    : complain(path, 'must be a text that is not empty', 'write it in double quotes')

export const readFlag: Reader<boolean> = (value, path, complain) =>
  typeof value === 'boolean' ? value : complain(path, 'must be true or false', 'write it without quotes')

export const readCount: Reader<number> = (value, path, complain) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? value
    : complain(path, 'must be a whole number, 0 or more', 'write it without quotes')

export const readDuration: Reader<number> = (value, path, complain) => {
  try {
    if (typeof value === 'string') return parseDuration(value)
  } catch (error) {
    return complain(path, `is not a duration (${describeError(error)})`, 'write it as "500ms", "10s", "30m" or "12h"')
  }
  return complain(path, 'must be a duration in quotes', 'write it as "500ms", "10s", "30m" or "12h"')
}

export const readOneOf =
  <const T extends string>(choices: readonly T[]): Reader<T> =>
  (value, path, complain) => {
    const found = choices.find((choice) => choice === value)
    if (found !== undefined) return found
    const meant = suggest(typeof value === 'string' ? value : '', choices)
    return complain(path, `must be ${choices.map((each) => `"${each}"`).join(' or ')}`, meant)
  }

/** A command is a list, so that no shell takes it apart. */
export const readCommand: Reader<readonly [string, ...string[]]> = (value, path, complain) => {
  const words = Array.isArray(value) && value.every((word) => typeof word === 'string') ? value : []
  const [program, ...args] = words
  if (program !== undefined && program !== '') return [program, ...args]
  return complain(path, 'must be a list of a program and its arguments', 'write it as ["node", "ledger.mjs", "append"]')
}
