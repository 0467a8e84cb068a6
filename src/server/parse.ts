import type { Context } from 'hono'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'

/** Requests are parsed here, once; behind it everything is of its type. */

export const wrong = (message: string, remedy: string) => new HoldfastError('usage/request', message, { remedy })

/** `?limit=20`; a page is never longer than what one answer should be. */
export function limitOf(c: Context): number {
  const given = c.req.query('limit')
  if (given === undefined) return LIMITS.page
  const limit = Number(given)
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= LIMITS.longestPage) return limit
  throw wrong(`"${given}" is no limit`, `limit is a whole number from 1 to ${LIMITS.longestPage}`)
}

/** Where to go on in the event stream: what the browser remembered wins over where it once began. */
export function resumePoint(c: Context): number {
  const given = c.req.header('last-event-id') ?? c.req.query('after') ?? '0'
  const seq = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
  if (Number.isSafeInteger(seq)) return seq
  throw wrong(`"${given}" is no sequence number`, 'give the number of the last event that you have, or 0')
}

export type Fields = Readonly<Record<string, unknown>>

/** The body as an object with none but the known fields. An empty one where nothing is needed is an empty object. */
export async function bodyOf(c: Context, known: readonly string[]): Promise<Fields> {
  const text = await c.req.text()
  if (text === '') return {}
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new HoldfastError('usage/not-json', 'the body is not declared to be JSON', {
      remedy: 'send it with "Content-Type: application/json"',
    })
  }
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong('the body is not an object', `its fields are ${known.join(', ')}`)
  }
  const stranger = Object.keys(value).find((name) => !known.includes(name))
  if (stranger !== undefined) throw wrong(`there is no field "${stranger}"`, `known are ${known.join(', ')}`)
  return value as Fields
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new HoldfastError('usage/request', 'the body is not JSON', { remedy: 'send one JSON object', cause })
  }
}

export function textField(fields: Fields, name: string, longest = Number.POSITIVE_INFINITY): string | undefined {
  const value = fields[name]
  if (value === undefined) return undefined
  if (typeof value === 'string' && value !== '' && value.length <= longest) return value
  throw wrong(`${name} is not as it should be`, `${name} is a text, not empty, of at most ${longest} characters`)
}
