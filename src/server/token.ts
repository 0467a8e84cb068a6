import { createHash, timingSafeEqual } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'

import { HoldfastError } from '../base/errors.ts'
import { createFileOnce, errorCode } from '../base/files.ts'
import type { Randomness } from '../base/ids.ts'

const TOKEN_BYTES = 32
const OTHERS = 0o077

/**
 * What a caller must show. Made once for a home folder and kept, so that an open page and a script go on working when
 * the daemon is started again. Of two that make it at the same time one wins, and both read the winner's.
 */
export async function readToken(path: string, random: Randomness, warn: (text: string) => void): Promise<string> {
  const token = (await contentOf(path)) ?? (await makeToken(path, random))
  if (!/^[\x21-\x7e]{16,}$/.test(token)) {
    throw new HoldfastError('auth/bad-token-file', `${path} does not hold a token`, {
      remedy: 'remove it, and the next start makes a new one',
    })
  }
  const { mode } = await stat(path)
  if ((mode & OTHERS) !== 0) warn(`others on this machine can read ${path}; chmod 600 it, or remove it for a new one`)
  return token
}

async function makeToken(path: string, random: Randomness): Promise<string> {
  await createFileOnce(path, `${random.hex(TOKEN_BYTES)}\n`, { mode: 0o600 })
  return (await contentOf(path)) ?? ''
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** How long the comparison takes says nothing about the token: digests have one length and are compared whole. */
export const isToken = (given: string, token: string): boolean => timingSafeEqual(digest(given), digest(token))
