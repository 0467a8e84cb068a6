import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { PAGE_HEADER } from '../api/client.ts'
import { IMPLIED } from '../api/endpoint.ts'
import type { Scope } from '../api/endpoint.ts'
import { HoldfastError } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import type { Caller } from '../control/desk.ts'
import { tokenDigest } from '../control/tokens.ts'
import type { Store } from '../store/store.ts'
import { tokenOfDigest } from '../tokens/token.ts'
import type { Token } from '../tokens/token.ts'

/** Somebody who showed something good. */
export interface Credential extends Caller {
  /** Whether it still is: tokens are revoked and files rewritten while a stream is open. */
  isGood(): Promise<boolean>
}

/** A token that is kept as a file; read each time, so that another content counts from that moment on. */
export interface KeptToken {
  readonly by: string
  readonly scopes: readonly Scope[]
  readonly read: () => Promise<string | undefined>
}

export interface Keys {
  readonly store: Store
  readonly kept: readonly KeptToken[]
  /** Two daemons on one machine share their cookies' host, not their name. */
  readonly cookieName: () => string
}

const digest = (text: string) => hash('sha256', text, 'buffer')

/** How long the comparison takes says nothing about the token: digests have one length and are compared whole. */
export const isSame = (given: string, token: string): boolean => timingSafeEqual(digest(given), digest(token))

const VIA = 'HTTP'

/** Who it is that asks, or the reason why nobody is let in. */
export async function recognise(request: IncomingMessage, keys: Keys): Promise<Credential> {
  const bearer = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
  if (bearer !== undefined) return recogniseBearer(bearer, keys)
  if (request.headers.authorization !== undefined) throw notSignedIn('auth/no-token')
  const cookie = cookieOf(request, keys.cookieName())
  if (cookie === undefined) throw notSignedIn('auth/no-token')
  if (request.headers[PAGE_HEADER.toLowerCase()] !== '1') {
    throw new HoldfastError('auth/no-page-header', 'the cookie came without the header that our page sends', {
      remedy: `programs use "Authorization: Bearer TOKEN"; a page sends "${PAGE_HEADER}: 1" too`,
    })
  }
  const row = await keys.store.read(tokenOfDigest, tokenDigest(cookie))
  if (row === undefined || row.kind !== 'browser') throw notSignedIn('auth/wrong-token')
  return credentialOf(row, keys)
}

async function recogniseBearer(given: string, keys: Keys): Promise<Credential> {
  for (const { read, by, scopes } of keys.kept) {
    const kept = await read()
    if (kept === undefined || !isSame(given, kept)) continue
    const isGood = async () => (await read()) === kept
    return { by, via: VIA, scopes, isGood }
  }
  const row = await keys.store.read(tokenOfDigest, tokenDigest(given))
  if (row === undefined || row.kind !== 'token') throw notSignedIn('auth/wrong-token')
  return credentialOf(row, keys)
}

function credentialOf(row: Token, { store }: Keys): Credential {
  const scopes = row.scopes.filter((scope): scope is Scope => scope in IMPLIED)
  return {
    by: `${row.kind} "${row.name}"`,
    via: VIA,
    scopes,
    tokenId: row.id,
    ...(row.threadId === null ? {} : { threadId: row.threadId as ThreadId }),
    isGood: async () => (await store.read(tokenOfDigest, row.digest)) !== undefined,
  }
}

function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

const notSignedIn = (code: 'auth/no-token' | 'auth/wrong-token') =>
  new HoldfastError(code, 'you are not signed in', {
    remedy: 'send "Authorization: Bearer TOKEN"; the token is in the file `token` of the home folder',
  })
