import { InvalidArgumentError } from 'commander'

import { parseDuration } from '../../base/duration.ts'
import { describeError } from '../../base/errors.ts'

/** A duration as an option wants it: 500ms, 10s, 30m. */
export function durationOption(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    throw new InvalidArgumentError(describeError(error))
  }
}
