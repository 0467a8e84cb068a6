import type { MiddlewareHandler } from 'hono'

import { HoldfastError } from '../base/errors.ts'
import type { Env } from './env.ts'

/**
 * A body has at most so many bytes. One that says its length is refused by that; one that comes in chunks is read here, up to
 * the limit. Hono's own makes a new Request around such a body, which it cannot of the ones that our server has.
 */
export const bodyOfAtMost = (most: number): MiddlewareHandler<Env> =>
  async function limitBody(c, next) {
    if (Number(c.req.header('content-length') ?? 0) > most) throw tooLarge(most)
    if (c.req.header('transfer-encoding') !== undefined) {
      // What is kept there are promises; by its type it is what they come to.
      c.req.bodyCache.text = Promise.resolve(await textOf(c.req.raw.body, most)) as unknown as string
    }
    await next()
  }

async function textOf(body: ReadableStream<Uint8Array> | null, most: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > most) throw tooLarge(most)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const tooLarge = (most: number) =>
  new HoldfastError('usage/body-too-large', `a body has at most ${most} bytes`, {
    remedy: 'put large input into a file and send its name',
  })
