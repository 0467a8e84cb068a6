import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { findSession } from '../../src/sessions/session.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { Installation } from '../support/holdfast.ts'
import { callHook, says, stopSays } from './support.ts'

const OWN = 'claude-s1' as ThreadId
/** By which Claude Code goes on at once. */
const NOTHING_TO_SAY = { status: 200, body: { async: true } }

async function daemonAt() {
  const installation = new Installation()
  const { home } = installation
  await installation.up()
  const { url } = JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { url: string }
  const token = readFileSync(join(home, 'token'), 'utf8').trim()
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const send = async (path: string, body: unknown, authorization = `Bearer ${token}`) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/v1/hooks${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    // Also what is answered past the router.
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('cache-control')).toBe('no-store')
    return { status: response.status, body: await response.json() }
  }
  return { home, store, send }
}

test('an event that a client sends to the daemon by itself is heard, and acknowledges what it was shown [M5]', async () => {
  const { home, store, send } = await daemonAt()
  await callHook({ home, says: says('UserPromptSubmit') })
  await store.apply(acceptMessage, {
    id: newMessageId(random),
    threadId: OWN,
    kind: 'completion',
    key: 'a',
    body: { summary: 'words' },
  })
  await callHook({ home, says: stopSays('mine') })
  expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'leased' }])
  expect(await send('/claude', says('PreToolUse', { tool_name: 'Bash' }))).toEqual(NOTHING_TO_SAY)
  expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'consumed' }])
  const large = says('PostToolUse', { tool_response: 'y'.repeat(1_500_000) })
  expect(await send('/claude', large)).toEqual(NOTHING_TO_SAY)
  expect(await store.read(findSession, 'claude:s1')).toMatchObject({ state: 'busy' })
})

test('the end of a turn is not taken over HTTP alone: it has no number, and its answer could be lost', async () => {
  const { store, send } = await daemonAt()
  expect(await send('/claude', stopSays('words'))).toEqual(NOTHING_TO_SAY)
  expect(await store.read(eventsAfter, 0, 10)).toMatchObject([
    { type: 'hook.unreadable', data: { why: expect.stringContaining('has to be a command') } },
  ])
  expect(await store.read(findSession, 'claude:s1')).toBeUndefined()
})

test('nobody without the token is heard, and no client that is not known', async () => {
  const { store, send } = await daemonAt()
  const event = says('PreToolUse')
  expect(await send('/claude', event, 'Bearer wrong')).toMatchObject({ status: 401 })
  expect(await send('', { client: 'claude', input: JSON.stringify(event) }, '')).toMatchObject({ status: 401 })
  expect(await send('/emacs', event)).toMatchObject({ status: 404 })
  expect(await send('', { client: 'emacs', input: '{}' })).toMatchObject({ status: 400 })
  expect(await store.read(findSession, 'claude:s1')).toBeUndefined()
})
