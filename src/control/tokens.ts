import { iso } from '../base/clock.ts'
import { createHash } from 'node:crypto'

import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import type { Randomness } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { createToken, listTokens, revokeToken, tokensByPrefix } from '../tokens/token.ts'
import type { Token } from '../tokens/token.ts'
import type { Desk } from './desk.ts'
import { onlyOne, theThread } from './find.ts'
import { filled, paged } from './page.ts'

/** Who else may come in, and how far. */

const TOKEN_BYTES = 32

/** 256 bits, and a word by which scanners of repositories and people know what it is. */
export const newTokenText = (random: Randomness): string => `hft_${random.hex(TOKEN_BYTES)}`

/** What is kept of it. A token has no pattern that a dictionary could know, so a plain digest is enough. */
export const tokenDigest = (text: string): string => createHash('sha256').update(text).digest('hex')

type TokenView = Answer<'tokens.revoke'>

export const viewToken = (token: Token): TokenView => ({
  id: token.id,
  name: token.name,
  kind: token.kind,
  scopes: token.scopes as TokenView['scopes'],
  ...(token.threadId === null ? {} : { threadId: token.threadId }),
  createdAt: iso(token.createdAt),
  createdBy: token.createdBy,
  ...(token.expiresAt === null ? {} : { expiresAt: iso(token.expiresAt) }),
  ...(token.revokedAt === null ? {} : { revokedAt: iso(token.revokedAt) }),
})

export async function list(desk: Desk, ask: Ask<'tokens.list'>): Promise<Answer<'tokens.list'>> {
  const { limit = LIMITS.page, after } = ask
  const everything = ask.all === 'true'
  const found = await desk.read(listTokens, { limit, all: everything, ...filled({ after }) })
  return paged(found.map(viewToken), limit)
}

export async function create(desk: Desk, ask: Ask<'tokens.create'>): Promise<Answer<'tokens.create'>> {
  const { scopes, name = scopes.join('+'), expiresInMs } = ask
  const threadId = ask.threadId === undefined ? undefined : (await theThread(desk.runtime.store, ask.threadId)).id
  if (threadId !== undefined && scopes.some((scope) => scope !== 'record')) {
    throw new HoldfastError('usage/token-thread', 'only a token to record is for one thread', {
      remedy: 'leave the thread out, or ask for the scope record alone',
    })
  }
  const { random } = desk.runtime
  const text = newTokenText(random)
  const token = await desk.apply(createToken, {
    id: `tok_${random.id()}`,
    kind: 'token',
    name,
    scopes,
    digest: tokenDigest(text),
    by: desk.who.by,
    ...filled({ threadId, expiresInMs }),
  })
  return { ...viewToken(token), token: text }
}

export async function revoke(desk: Desk, { token: given }: Ask<'tokens.revoke'>): Promise<Answer<'tokens.revoke'>> {
  const prefix = given.startsWith('tok_') ? given : `tok_${given}`
  const found = await desk.read(tokensByPrefix, prefix)
  const { id } = onlyOne(found, 'token', given, '`holdfast token list` shows them')
  const revoked = await desk.apply(revokeToken, id, desk.who.by)
  if (revoked.kind === 'revoked') return viewToken(revoked.token)
  throw new HoldfastError('tokens/already-revoked', `${id} has been revoked already`, {
    remedy: 'there is nothing left to end',
  })
}
