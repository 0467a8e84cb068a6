import { InvalidArgumentError } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'

/** How many of something: 1 or more, and no more than anybody may ask for. */
export function countOption(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1 || value > LIMITS.longestPage) {
    throw new InvalidArgumentError(`a whole number from 1 to ${LIMITS.longestPage} is wanted`)
  }
  return value
}

/** How many of something, without an end: pages are put together. */
export function anyCountOption(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new HoldfastError('usage/limit', '--limit wants a whole number of 1 or more', { remedy: 'as in --limit 20' })
}

/** Where in the record to go on: 0 is its beginning. What is no number would wait for events that never come. */
export function sequenceOption(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < 0) {
    throw new InvalidArgumentError('a sequence number is wanted: 0, or what an event begins with')
  }
  return value
}
