import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run } from '../../src/store/transition.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { BOSS, install, message, withBoss } from './support.ts'
import type { MessageView } from './support.ts'

/** Time passes: what is due later is due now. */
const change = (store: Store, statement: Sql) =>
  store.apply(function* () {
    yield* run(statement)
  })

test('each reason for a dead letter is listed, once; a notice to the sender, a warning to the operator; no retry storm [M9] [inbox/never-lost]', async () => {
  const place = install('sqlite', { lease: '1s' })
  const store = await withBoss(place)
  const command = (...flags: readonly string[]) => place.run(['run', ...flags, '--', 'true'])
  await command('--thread', 'quiet', '--parent', 'boss', '--no-notify')
  await command('--thread', 'boss', '--parent', 'boss')
  await place.run(['run', '--thread', 'orphan', '--', 'true'], { HOLDFAST_THREAD: 'never' })
  await command('--thread', 'gone')
  await store.apply(acceptMessage, message('to-gone', { threadId: 'gone' as ThreadId, from: BOSS, kind: 'note' }))
  await store.apply(acceptMessage, message('w', { kind: 'waiting', from: 'gone' as ThreadId }))
  expect((await place.run(['threads', 'remove', 'gone'])).stdout).toContain('2 messages are now dead letters')
  await store.apply(acceptMessage, message('said', { threadId: 'nobody' as ThreadId, kind: 'note' }))
  await store.apply(acceptMessage, message('huge', { body: { summary: 'x'.repeat(LIMITS.attachmentBytes + 1) } }))
  await store.apply(acceptMessage, message('old'))
  await change(store, sql`update messages set created_at = created_at - ${LIMITS.messagesWaitMs} where key = 'old'`)
  const daemon = await place.daemon()
  const dead = () => place.json<MessageView[]>(['inbox', 'dead', 'list'])
  const letters = await until('all are given up', async () => {
    await change(store, sql`update messages set next_attempt_at = 1 where next_attempt_at is not null`)
    const found = await dead()
    return found.length >= 8 ? found : undefined
  })
  expect(letters.map(({ reason, attempts }) => `${reason} ${attempts}`).toSorted()).toEqual([
    'expired 0',
    'no-notify 0',
    'orphan 5',
    'recipient removed 0',
    'self 0',
    'sender removed 0',
    'too large 0',
    'unknown recipient 5',
  ])
  await daemon.said('its parent never never came')
  // Each sender that has an inbox is told once, and what is dead stays dead.
  const notices = await place.json<MessageView[]>(['inbox', 'list', 'child', '--state', 'pending'])
  expect(notices.map(({ kind }) => kind)).toEqual(['notice', 'notice', 'notice'])
  expect(await dead()).toHaveLength(8)
  await assertInvariants(store)
})

test('a dead letter is shown, put back once, or purged [M9]', async () => {
  const place = install()
  const store = await withBoss(place)
  await store.apply(acceptMessage, message('a'))
  await store.apply(acceptMessage, message('b'))
  expect((await place.run(['threads', 'remove', 'boss'])).code).toBe(0)
  const [first, second] = await place.json<MessageView[]>(['inbox', 'dead', 'list', 'boss'])
  const dead = (...args: readonly string[]) => place.run(['inbox', 'dead', ...args])
  expect((await dead('show', first?.id ?? '')).stdout).toContain('state: dead (recipient removed)')
  await place.run(['run', '--thread', 'boss', '--', 'true'])
  expect((await dead('retry', first?.id ?? '')).code).toBe(0)
  expect((await dead('retry', first?.id ?? '')).code).toBe(4)
  expect((await dead('show', first?.id ?? '')).code).toBe(4)
  expect((await place.json<MessageView[]>(['inbox', 'boss'])).map(({ id }) => id)).toEqual([first?.id])
  expect((await dead('purge')).code).toBe(2)
  expect((await dead('purge', second?.id ?? '')).code).toBe(0)
  for (const verb of ['show', 'retry', 'purge']) expect((await dead(verb, second?.id ?? '')).code).toBe(3)
  expect(await place.json(['inbox', 'dead', 'list'])).toEqual([])
})

test('records of hooks that could not be read are announced where dead letters are listed, and by the doctor [M13]', async () => {
  const place = install()
  await withBoss(place)
  const corrupt = join(place.home, 'spool', 'corrupt')
  mkdirSync(corrupt, { recursive: true })
  writeFileSync(join(corrupt, 'one'), '{')
  for (const end of ['', `.${process.pid}-1`])
    writeFileSync(join(place.home, 'spool', `000000000000001-1-1.json${end}`), '{')
  expect((await place.run(['inbox', 'dead', 'list'])).stderr).toContain('1 records of hooks could not be read')
  const { stdout } = await place.run(['doctor'])
  expect(stdout).toContain('records of hooks that could not be read: 1')
  expect(stdout).toContain('events of hooks that are not told yet: 2')
})
