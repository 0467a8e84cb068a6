import { InvalidArgumentError } from 'commander'

import { LIMITS } from '../base/limits.ts'

/** How many of something: 1 or more, and no more than anybody may ask for. */
export function countOption(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1 || value > LIMITS.longestPage) {
    throw new InvalidArgumentError(`a whole number from 1 to ${LIMITS.longestPage} is wanted`)
  }
  return value
}
