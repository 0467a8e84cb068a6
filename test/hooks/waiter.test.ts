import { spawn } from 'node:child_process'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { findSession } from '../../src/sessions/session.ts'
import { countWakes } from '../../src/sessions/wake.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { temporaryFolder } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { callHook, says, stopSays } from './support.ts'

const OWN = 'claude-s1' as ThreadId
const CLI = { CLAUDE_CODE_ENTRYPOINT: 'cli' }

/** A client of its own, because a waiter goes when its client goes. */
function aClient(): { readonly env: Record<string, string>; kill(): void } {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { env: { ...CLI, CLAUDE_PID: String(child.pid) }, kill: () => void child.kill('SIGKILL') }
}

async function anIdleSession() {
  const home = join(temporaryFolder(), 'home')
  const client = aClient()
  const { env } = client
  await callHook({ home, env, says: says('SessionStart', { source: 'startup' }) })
  await callHook({ home, env, says: says('UserPromptSubmit') })
  await callHook({ home, env, says: stopSays('done') })
  const store = await openSqliteStore({ path: join(home, 'holdfast.db') })
  onTestFinished(() => store.close())
  return { home, client, store }
}

const waits = (home: string, env: Record<string, string>) =>
  callHook({ home, env, args: ['--wait'], says: stopSays('done') })

const tell = (store: Store, key: string) =>
  store.apply(acceptMessage, {
    id: newMessageId(random),
    threadId: OWN,
    kind: 'completion',
    key,
    body: { summary: key },
  })

test('who waits beside an idle session ends with the code that wakes it once something came, and takes nothing [M11] [inbox/effect-once]', async () => {
  const { home, client, store } = await anIdleSession()
  const waiter = waits(home, client.env)
  await tell(store, 'a')
  expect(await waiter).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('messages are waiting') })
  expect(await store.read(messagesOf, OWN)).toMatchObject([{ state: 'pending' }])
  await callHook({ home, env: client.env, says: says('UserPromptSubmit', {}, { turn: 'p2' }) })
  const active = stopSays('woken', { stop_hook_active: true }, { turn: 'p2' })
  const stop = await callHook({ home, env: client.env, says: active })
  expect(stop.stdout).toContain('"decision":"block"')
  expect(await store.read(countWakes)).toEqual({ wakes: 1, vain: 0 })
})

test('after three blocks in a row a woken turn gets what had to wait, although the client says that it went on [M6]', async () => {
  const { home, client, store } = await anIdleSession()
  const { env } = client
  await callHook({ home, env, says: says('UserPromptSubmit', {}, { turn: 'p2' }) })
  for (const round of [0, 1, 2]) {
    await tell(store, `k${round}`)
    const stop = stopSays('more', { stop_hook_active: round > 0 }, { turn: 'p2' })
    expect((await callHook({ home, env, says: stop })).stdout).toContain('block')
  }
  await tell(store, 'last')
  const full = stopSays('enough', { stop_hook_active: true }, { turn: 'p2' })
  expect((await callHook({ home, env, says: full })).stdout).toBe('')
  expect(await waits(home, env)).toMatchObject({ code: 2 })
  await callHook({ home, env, says: says('UserPromptSubmit', {}, { turn: 'p3' }) })
  const woken = stopSays('woken', { stop_hook_active: true }, { turn: 'p3' })
  expect((await callHook({ home, env, says: woken })).stdout).toContain('block')
  expect(await store.read(countWakes)).toEqual({ wakes: 1, vain: 0 })
})

test('one waits for each session: a second goes at once, and so does one in print mode', async () => {
  const { home, client, store } = await anIdleSession()
  const first = waits(home, client.env)
  const note = join(home, 'hooks', 'sessions', 'claude-s1.waiter')
  const { readFileSync, existsSync } = await import('node:fs')
  await until('it waits', async () => (existsSync(note) ? true : undefined))
  const { pid } = JSON.parse(readFileSync(note, 'utf8')) as { pid: number }
  expect(await waits(home, client.env)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(await waits(home, { ...client.env, CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' })).toMatchObject({ code: 0 })
  expect(JSON.parse(readFileSync(note, 'utf8'))).toMatchObject({ pid })
  await tell(store, 'a')
  expect(await first).toMatchObject({ code: 2 })
})

test('it goes when the session ends or its client dies, and wakes nobody', async () => {
  const { home, client, store } = await anIdleSession()
  const waiter = waits(home, client.env)
  await callHook({ home, env: client.env, says: says('SessionEnd', { reason: 'exit' }) })
  // It has less than a second for that. What it could not tell on a busy machine it left for the next one.
  await callHook({ home, says: says('SessionStart', { source: 'startup' }, { session: 's2' }) })
  expect(await waiter).toEqual({ code: 0, stdout: '', stderr: '' })
  const other = aClient()
  await callHook({ home, env: other.env, says: says('SessionStart', { source: 'resume' }) })
  const second = waits(home, other.env)
  other.kill()
  // Any commit makes it look; without one it looks by itself after a while.
  await tell(store, 'a')
  expect(await second).toMatchObject({ code: 0 })
  expect(await store.read(findSession, 'claude:s1')).toMatchObject({ wakes: 0 })
})
