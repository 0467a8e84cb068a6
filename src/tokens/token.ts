import { record } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

const TOKEN_KINDS = ['token', 'browser'] as const
export type TokenKind = (typeof TOKEN_KINDS)[number]

const tokenRow = row({
  id: text(),
  /** `browser`: what a browser got for a code, and keeps as a cookie. */
  kind: oneOf(TOKEN_KINDS),
  name: text(),
  /** Words of the API's, which this part of the house only keeps. */
  scopes: json<readonly string[]>(),
  /** The only thread that it is good for. */
  threadId: nullable(text()),
  digest: text(),
  createdAt: integer,
  createdBy: text(),
  expiresAt: nullable(integer),
  revokedAt: nullable(integer),
  revokedBy: nullable(text()),
  /** The token that a browser signed in with: they end together. */
  parentId: nullable(text()),
})
/** What somebody shows to be let in. The database has its digest alone. */
export type Token = Decoded<typeof tokenRow>

export interface NewToken {
  readonly id: string
  readonly kind: TokenKind
  readonly name: string
  readonly scopes: readonly string[]
  readonly threadId?: string
  readonly digest: string
  readonly by: string
  readonly expiresInMs?: number
  readonly parentId?: string
}

/** The same id is the same token: doing it again changes nothing. */
export function* createToken(token: NewToken): Transition<Token> {
  const { id, kind, name, scopes, threadId, digest, by, expiresInMs, parentId } = token
  const expiresAt = expiresInMs === undefined ? sql`null` : sql`${now} + ${expiresInMs}`
  const made =
    yield* run(sql`insert into tokens (id, kind, name, scopes, thread_id, digest, created_at, created_by, expires_at, parent_id)
    values (${id}, ${kind}, ${name}, ${JSON.stringify(scopes)}, ${threadId ?? null}, ${digest}, ${now}, ${by}, ${expiresAt}, ${parentId ?? null})
    on conflict do nothing`)
  if (made === 1) yield* record({ type: 'token.created', data: { tokenId: id, kind, name, scopes, by } })
  return yield* one(tokenRow, sql`select * from tokens where id = ${id}`)
}

export type Revoked =
  | { readonly kind: 'revoked'; readonly token: Token }
  | { readonly kind: 'already-revoked'; readonly token: Token }
  | { readonly kind: 'unknown' }

/** From the commit on it opens nothing, nor does a browser that signed in with it. */
export function* revokeToken(id: string, by: string): Transition<Revoked> {
  const token = yield* first(
    tokenRow,
    sql`update tokens set revoked_at = ${now}, revoked_by = ${by} where id = ${id} and revoked_at is null returning *`,
  )
  if (token !== undefined) {
    yield* record({ type: 'token.revoked', data: { tokenId: id, by } })
    return { kind: 'revoked', token }
  }
  const ended = yield* findToken.single(id)
  return ended === undefined ? { kind: 'unknown' } : { kind: 'already-revoked', token: ended }
}

const findToken = single((id: string) => first(tokenRow, sql`select * from tokens where id = ${id}`))

/** Neither it nor the token that it came from has ended. What is said of it alone is what its index knows. */
const IN_FORCE = sql`t.revoked_at is null and not exists (select 1 from tokens p
  where p.id in (t.id, t.parent_id) and (p.revoked_at is not null or p.expires_at <= ${now}))`

/** One that is good now. */
export const tokenOfDigest = single((digest: string) =>
  first(tokenRow, sql`select t.* from tokens t where t.digest = ${digest} and ${IN_FORCE}`),
)

export const tokensByPrefix = single((prefix: string) =>
  all(tokenRow, sql`select * from tokens where id >= ${prefix} and id < ${`${prefix}\u{10ffff}`} order by id limit 2`),
)

export interface TokenFilter {
  readonly limit: number
  /** Also those that were revoked or have run out. */
  readonly all: boolean
  readonly after?: string
}

/** Newest first. */
export const listTokens = single((filter: TokenFilter) =>
  all(
    tokenRow,
    sql`select t.* from tokens t
      where ${filter.all ? sql`1 = 1` : IN_FORCE}
        and ${filter.after === undefined ? sql`1 = 1` : sql`(t.created_at, t.id) < (select created_at, id from tokens where id = ${filter.after})`}
      order by t.created_at desc, t.id desc limit ${filter.limit}`,
  ),
)
