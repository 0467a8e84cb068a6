import type { Context } from 'hono'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { nothingToSay } from '../hooks/answer.ts'
import { Unreadable, isClient } from '../hooks/event.ts'
import { hear } from '../hooks/hear.ts'
import type { Listener } from '../hooks/hear.ts'
import { lastShown } from '../hooks/notes.ts'
import { replaySpool } from '../hooks/spool.ts'
import { readTold } from '../hooks/told.ts'
import type { Runtime } from '../runtime.ts'
import type { Env } from './env.ts'
import { answerAtOnce, answerJson } from './headers.ts'
import { wrong } from './parse.ts'

/*
 * Two doors for the same events: `/hooks` for our own command, which knows more than the client says and wants our answer,
 * and `/hooks/CLIENT` for what a client sends by itself and reads as its hook's answer.
 */

export async function hearTold(c: Context<Env>, runtime: Runtime, warn: (text: string) => void): Promise<Response> {
  const told = readTold(await c.req.json().catch(() => undefined))
  if (told instanceof Unreadable) throw wrong(told.why, 'use the hook command of this version')
  // What was spooled before it happened before it.
  await replaySpool({ ...runtime, warn }, LIMITS.spoolTogether)
  return answerJson(c, await hear(listenerOf(runtime), told))
}

/** A daemon knows the rules; one without a configuration has none beside those that are stored. */
const listenerOf = ({ store, random, config }: Runtime): Listener => ({
  store,
  random,
  policy: config?.policy ?? [],
  approvalMs: config?.approvalMs,
})

export async function hearClient(c: Context<Env>, runtime: Runtime): Promise<Response> {
  const client = c.req.param('client') ?? ''
  if (!isClient(client))
    throw new HoldfastError('not-found/client', `there is no client "${client}"`, {
      remedy: 'use claude, codex or gemini',
    })
  const input = await c.req.text()
  const noted = (session: string) => lastShown(runtime.home, client, session)
  const { output } = await hear({ ...listenerOf(runtime), lastShown: noted }, { client, input })
  return answerAtOnce(c, output === '' ? nothingToSay(client) : output)
}
