import type { Complain } from './problem.ts'
import { readDuration, readRecord, readText } from './read.ts'

/** How long what is over is kept. What is not said here is as in src/base/limits.ts. */
export interface RetentionConfig {
  /** Runs that have ended, what is recorded of them, and the log. */
  readonly runsKeptMs?: number | 'for-ever'
  /** Conversations in which nothing happens any more; without it they are kept. */
  readonly threadsKeptMs?: number
  readonly actsKeptMs?: number
  /** A folder: what is forgotten is there first. */
  readonly archive?: string
  readonly occurrencesKeptMs?: number
}

export function readRetention(value: unknown, complain: Complain): RetentionConfig {
  const path = ['retention']
  const written = readRecord(value, ['runs', 'threads', 'audit', 'archive', 'occurrences'], path, complain)
  const duration = (key: string) =>
    written[key] === undefined ? undefined : readDuration(written[key], [...path, key], complain)
  const runsKeptMs = written['runs'] === 'forever' ? 'for-ever' : duration('runs')
  const archive =
    written['archive'] === undefined ? undefined : readText(written['archive'], [...path, 'archive'], complain)
  const [threadsKeptMs, actsKeptMs, occurrencesKeptMs] = [
    duration('threads'),
    duration('audit'),
    duration('occurrences'),
  ]
  return {
    ...(runsKeptMs === undefined ? {} : { runsKeptMs }),
    ...(threadsKeptMs === undefined ? {} : { threadsKeptMs }),
    ...(actsKeptMs === undefined ? {} : { actsKeptMs }),
    ...(archive === undefined ? {} : { archive }),
    ...(occurrencesKeptMs === undefined ? {} : { occurrencesKeptMs }),
  }
}
