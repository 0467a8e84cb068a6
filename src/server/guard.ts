import type { Context, MiddlewareHandler } from 'hono'

import { covers } from '../api/endpoint.ts'
import type { Endpoint } from '../api/endpoint.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { Caller } from '../control/desk.ts'
import { recognise } from './credentials.ts'
import type { Keys } from './credentials.ts'
import type { Env } from './env.ts'

/** Nothing under it is told to somebody who shows nothing good, not even that it is not there. */
export const signedIn = (keys: Keys): MiddlewareHandler<Env> =>
  async function checkToken(c, next) {
    c.set('who', await recognise(c.env.incoming, keys))
    await next()
  }

/** A token for one thread opens what is marked for that, and nothing else; what it then sees is the handler's to check. */
function mayCall(who: Pick<Caller, 'scopes' | 'threadId'>, { scope, own }: Endpoint): boolean {
  if (scope === 'nobody' || scope === 'anybody') return true
  return who.threadId === undefined ? covers(who.scopes, scope) : own === true
}

export function refuseNarrow(c: Context<Env>, endpoint: Endpoint): void {
  const who = c.get('who')
  if (mayCall(who, endpoint)) return
  const has = who.threadId === undefined ? who.scopes.join(', ') : `record, for the thread ${who.threadId}`
  throw new HoldfastError('auth/scope', `this needs the scope ${endpoint.scope}; your token has ${has}`, {
    remedy: '`holdfast token create --scope` makes one that may',
  })
}

/** So many at once, and the next is told when to come back. */
export function atMostAtOnce(): MiddlewareHandler<Env> {
  let underWay = 0
  return async function count(_, next) {
    if (underWay >= LIMITS.requestsAtOnce) {
      throw new HoldfastError('capacity/requests', `${LIMITS.requestsAtOnce} requests are under way`, {
        remedy: 'wait a moment, then try again',
        retry: { afterMs: 1_000 },
      })
    }
    underWay += 1
    try {
      await next()
    } finally {
      underWay -= 1
    }
  }
}
