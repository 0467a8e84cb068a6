import { sleep } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { errorCode } from '../base/files.ts'

/** Troubles of a store that pass: a full disk, a lock, a database that is not there for a while. */
const PASSING = ['busy', 'full', 'io', 'slow', 'unreachable', 'unknown-commit'].map((name) => `store/${name}`)

/** Of these, what may have been stored all the same. */
const UNKNOWN = 'store/unknown-commit'

const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 5_000

/**
 * What a tool has done is a fact that nobody else knows, and what a model has said is paid for: it is kept here until it is
 * recorded. A change that must not be applied twice is given up when nobody knows whether it was: then what is recorded
 * says so.
 */
export async function keepUntilStored<T>(
  clock: Clock,
  write: () => Promise<T>,
  { twice = true }: { readonly twice?: boolean } = {},
): Promise<T> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      return await write()
    } catch (error) {
      const code = errorCode(error) ?? ''
      if (!PASSING.includes(code) || (!twice && code === UNKNOWN)) throw error
      await sleep(clock, wait)
    }
  }
}
