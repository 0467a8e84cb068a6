import type { Context } from 'hono'
import { z } from 'zod'

import { HoldfastError } from '../base/errors.ts'

/** Requests are parsed here, once, by the schemas of their routes; behind it everything is of its type. */

export const wrong = (message: string, remedy: string) => new HoldfastError('usage/request', message, { remedy })

/** Where to go on in the event stream: what the browser remembered wins over where it once began. */
export function resumePoint(c: Context): number {
  const given = c.req.header('last-event-id') ?? c.req.query('after') ?? '0'
  const seq = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
  if (Number.isSafeInteger(seq)) return seq
  throw wrong(`"${given}" is no sequence number`, 'give the number of the last event that you have, or 0')
}

/** `?state=queued&state=running` and `?state=queued,running` are the same. Of any other field there is one. */
function fieldsOfQuery(c: Context, schema: z.ZodObject): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => {
      if (isList(schema.shape[name])) return [name, values.flatMap((value) => value.split(','))]
      if (values.length > 1) throw wrong(`${name} is there twice`, 'say it once')
      return [name, values[0]]
    }),
  )
}

const isList = (field: unknown): boolean =>
  field instanceof z.ZodArray || (field instanceof z.ZodOptional && isList(field.unwrap()))

/** The body as an object. An empty one where nothing is needed is an empty object. */
async function fieldsOfBody(c: Context): Promise<unknown> {
  const text = await c.req.text()
  if (text === '') return {}
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new HoldfastError('usage/not-json', 'the body is not declared to be JSON', {
      remedy: 'send it with "Content-Type: application/json"',
    })
  }
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new HoldfastError('usage/request', 'the body is not JSON', { remedy: 'send one JSON object', cause })
  }
}

/** What a caller says, as the route's schema wants it. */
export async function askOf(c: Context, schema: z.ZodObject): Promise<object> {
  const isQuery = c.req.method === 'GET' || c.req.method === 'HEAD'
  const parsed = schema.safeParse(isQuery ? fieldsOfQuery(c, schema) : await fieldsOfBody(c))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const where = issue?.path.join('.') ?? ''
  const known = Object.keys(schema.shape)
  const fields = known.length === 0 ? 'it takes none' : `known are ${known.join(', ')}`
  throw wrong(
    where === '' ? 'the request is not as it should be' : `${where} is not as it should be`,
    `${issue?.message ?? ''}; ${fields}`,
  )
}
