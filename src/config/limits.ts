import type { RunLimits } from '../loop/limits.ts'
import type { ModelPrice } from '../loop/ports.ts'
import { readDuration, readRecord } from './read.ts'
import type { Reader } from './read.ts'

const MICRO = 1_000_000

export const readPositive: Reader<number> = (value, path, complain) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0
    ? value
    : complain(path, 'must be a whole number, 1 or more', 'write it without quotes; leave it out for the default')

const readUsd: Reader<number> = (value, path, complain) =>
  typeof value === 'number' && Number.isFinite(value) && value > 0
    ? Math.max(1, Math.round(value * MICRO))
    : complain(path, 'must be an amount in US dollars, more than 0', 'write it as 5 or 0.25, without quotes')

/** The setting, what it is called inside, and how it is read. */
const SETTINGS: readonly [string, keyof RunLimits, Reader<number>][] = [
  ['turns', 'turns', readPositive],
  ['tokens', 'tokens', readPositive],
  ['costUsd', 'costMicrousd', readUsd],
  ['timeout', 'timeoutMs', readDuration],
  ['truncatedReplies', 'truncatedReplies', readPositive],
]

/** What each run of an agent may spend; what is not said is as everywhere. */
export const readLimits: Reader<Partial<RunLimits>> = (value, path, complain) => {
  const known = SETTINGS.map(([setting]) => setting)
  const written = readRecord(value, known, path, complain)
  const read = SETTINGS.map(([setting, name, reader]) => {
    const amount = written[setting] === undefined ? undefined : reader(written[setting], [...path, setting], complain)
    return amount === undefined ? {} : { [name]: amount }
  })
  return Object.assign({}, ...read) as Partial<RunLimits>
}

const PRICES = ['input', 'output', 'cacheRead', 'cacheWrite'] as const

/** In US dollars for a million tokens. */
export const readPrice: Reader<ModelPrice> = (value, path, complain) => {
  const written = readRecord(value, PRICES, path, complain)
  const read = PRICES.map((kind) => {
    const amount = written[kind]
    if (amount === undefined && kind !== 'input' && kind !== 'output') return {}
    if (typeof amount === 'number' && Number.isFinite(amount) && amount >= 0) return { [kind]: amount }
    return complain(
      [...path, kind],
      amount === undefined ? 'is missing' : 'must be an amount in US dollars for a million tokens',
      'write { "input": 3, "output": 15 }, without quotes around the amounts',
    )
  })
  return Object.assign({}, ...read) as ModelPrice
}
