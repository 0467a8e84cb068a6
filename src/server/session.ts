import { iso } from '../base/clock.ts'
import type { Context } from 'hono'

import type { Answer } from '../api/routes.ts'
import { LIMITS } from '../base/limits.ts'
import { Desk } from '../control/desk.ts'
import type { Caller, House } from '../control/desk.ts'
import { newTokenText, tokenDigest } from '../control/tokens.ts'
import { createToken, revokeToken } from '../tokens/token.ts'
import { recognise } from './credentials.ts'
import type { Credential, Keys } from './credentials.ts'
import type { Env } from './env.ts'
import { answerJson } from './headers.ts'
import { wrong } from './parse.ts'
import type { SignInCodes } from './sign-in.ts'

export interface Doors {
  readonly house: House
  readonly keys: Keys
  readonly codes: SignInCodes
  readonly tls: boolean
  readonly url: () => string
}

const viewCaller = ({ by, scopes, threadId, tokenId }: Caller): Answer<'session.show'> => ({
  by,
  scopes,
  ...(threadId === undefined ? {} : { threadId }),
  ...(tokenId === undefined ? {} : { tokenId }),
})

/** Who holds the code may do everything, as who holds the token may: it was printed for the owner. */
const BY_CODE: Caller = { by: 'a sign-in code', via: 'HTTP', scopes: ['admin'] }

/** The cookie is a token like others: it is listed, it can be revoked, and a new daemon knows it. */
export async function openSession(c: Context<Env>, doors: Doors, code: string | undefined): Promise<Response> {
  const who = await whoSignsIn(c, doors, code)
  const { random } = doors.house.runtime
  const text = newTokenText(random)
  const token = await new Desk(doors.house, who, 'session.open').apply(createToken, {
    id: `tok_${random.id()}`,
    kind: 'browser',
    name: browserName(c.req.header('user-agent')),
    scopes: who.scopes,
    digest: tokenDigest(text),
    by: who.by,
    expiresInMs: LIMITS.browserMs,
    ...(who.tokenId === undefined ? {} : { parentId: who.tokenId }),
  })
  setCookie(c, doors, text, LIMITS.browserMs / 1_000)
  return answerJson(c, viewCaller({ ...who, by: `browser "${token.name}"`, tokenId: token.id }))
}

const isBrowser = (c: Context<Env>) => c.req.header('authorization') === undefined

async function whoSignsIn(c: Context<Env>, { codes, keys }: Doors, code: string | undefined): Promise<Caller> {
  if (code !== undefined) {
    codes.use(code)
    return BY_CODE
  }
  const who = await recognise(c.env.incoming, keys)
  if (who.threadId !== undefined) throw wrong('a token for one thread signs nobody in', 'use another')
  // One could go on from cookie to cookie, long after what it signed in with has ended.
  if (isBrowser(c))
    throw wrong('this browser is signed in, and signs in no other', 'use what `holdfast token code` prints')
  return who
}

/** Of a long line the part that a person recognises. */
function browserName(agent: string | undefined): string {
  const [name] = /(Firefox|Edg|OPR|Chrome|Safari)\/[\d.]+/.exec(agent ?? '') ?? []
  return name ?? 'a browser'
}

function setCookie(c: Context<Env>, { keys, tls }: Doors, value: string, seconds: number): void {
  const parts = [`${keys.cookieName()}=${value}`, 'Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict']
  c.header('Set-Cookie', [...parts, ...(tls ? ['Secure'] : [])].join('; '))
}

export const showSession = (c: Context<Env>): Response => answerJson(c, viewCaller(c.get('who')))

export async function closeSession(c: Context<Env>, doors: Doors): Promise<Response> {
  const who: Credential = c.get('who')
  const isOpen = isBrowser(c) && who.tokenId !== undefined
  if (isOpen) await new Desk(doors.house, who, 'session.close').apply(revokeToken, who.tokenId, who.by)
  if (isOpen) setCookie(c, doors, '', 0)
  return answerJson(c, { closed: isOpen })
}

export function makeCode(c: Context<Env>, { codes, url }: Doors): Response {
  const { code, expiresAt } = codes.make()
  return answerJson(c, { code, expiresAt: iso(expiresAt), url: signInUrl(url(), code) }, 201)
}

/** Behind `#`: a browser keeps that part to itself. */
export const signInUrl = (url: string, code: string): string => `${url}/#code=${code}`
