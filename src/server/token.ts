import { readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'

import { HoldfastError } from '../base/errors.ts'
import { createFileOnce, errorCode, explainTrouble } from '../base/files.ts'
import type { Randomness } from '../base/ids.ts'

const TOKEN_BYTES = 32
const OTHERS = 0o077
const GOOD = /^[\x21-\x7e]{16,}$/

/**
 * What a caller must show. Made once for a home folder and kept, so that an open page and a script go on working when
 * the daemon is started again. Of two that make it at the same time one wins, and both read the winner's.
 */
export async function makeTokenFile(path: string, random: Randomness, warn: (text: string) => void): Promise<void> {
  await createFileOnce(path, `${random.hex(TOKEN_BYTES)}\n`, { mode: 0o600 })
  if ((await readTokenFile(path)) === undefined) {
    throw new HoldfastError('auth/bad-token-file', `${path} does not hold a token`, {
      remedy: 'remove it, and the next start makes a new one',
    })
  }
  const { mode } = await stat(path)
  if ((mode & OTHERS) !== 0) warn(`others on this machine can read ${path}; chmod 600 it, or remove it for a new one`)
}

/**
 * As it is now. A file that is gone, or holds no token, lets nobody in. Read at once, as every request waits for it: the
 * thread pool is passed four times for a file, and costs more than its line.
 */
export async function readTokenFile(path: string): Promise<string | undefined> {
  try {
    const text = readFileSync(path, 'utf8').trim()
    return GOOD.test(text) ? text : undefined
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw explainTrouble(error, path, 'read')
  }
}
