import { createHmac } from 'node:crypto'

import type { Clock } from '../base/clock.ts'
import { jsonText } from '../base/visible.ts'
import { inWords } from './channel.ts'
import type { Channel, Message } from './channel.ts'

export interface Webhook {
  readonly url: string
  readonly secret: string
}

/**
 * `X-Holdfast-Signature: v1=HEX`, the HMAC-SHA256 of `TIMESTAMP.BODY` under the shared secret. With the timestamp in it, what
 * was recorded cannot be sent again much later.
 */
export function signatureOf(body: string, secret: string, clock: Pick<Clock, 'now'>) {
  const timestamp = String(Math.floor(clock.now() / 1_000))
  return {
    'X-Holdfast-Timestamp': timestamp,
    'X-Holdfast-Signature': `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`,
  }
}

/** A signed request. */
export function webhookChannel({ url, secret }: Webhook, clock: Pick<Clock, 'now'>): Channel {
  return {
    name: `webhook ${nameOf(url)}`,
    async send({ id, notice, link }, signal) {
      const body = jsonText({ id, ...notice, ...(link === undefined ? {} : { link }) })
      await post(url, body, signal, {
        'Content-Type': 'application/json',
        ...signatureOf(body, secret, clock),
      })
    },
  }
}

export interface Ntfy {
  /** Of the topic. */
  readonly url: string
  readonly token?: string
}

export function ntfyChannel({ url, token }: Ntfy): Channel {
  return {
    name: `ntfy ${nameOf(url)}`,
    send(message: Message, signal) {
      const { title, text } = inWords(message)
      const { link } = message
      // Headers carry ASCII only, so the words are in the body.
      return post(url, `${title}\n${text}`, signal, {
        Title: 'Holdfast',
        ...(link === undefined ? {} : { Click: link }),
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      })
    },
  }
}

/** What is behind `?` may be a secret of its own. */
function nameOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

async function post(
  url: string,
  body: string,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  // Not to wherever an answer points: what is said is meant for this address.
  const answer = await fetch(url, { method: 'POST', body, headers: { ...headers }, signal, redirect: 'manual' })
  await answer.body?.cancel()
  if (!answer.ok) throw new Error(`it answered with status ${answer.status}`)
}
