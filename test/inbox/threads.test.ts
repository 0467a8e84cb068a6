import { describe, expect, test } from 'vitest'

import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { RunView } from '../../src/runs/view.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { sessionStarted, turnBegun } from '../../src/sessions/events.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesIn } from '../../src/threads/message.ts'
import { processesWith, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { BOSS, engines, install, message, withBoss } from './support.ts'
import type { Drained, MessageView } from './support.ts'

const clerk = { clerk: { replies: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] } }

interface Branch {
  readonly id: string
  readonly doing: string
  readonly pending: number
  readonly children: readonly Branch[]
}

describe.each(engines)('threads on $engine', ({ engine }) => {
  test('a stopped one is cancelled with what it started, gets no surprise turn, and goes on when a person writes', async () => {
    const shell = { tool: 'shell', input: { command: 'sleep 300' } }
    const agents = { busy: { tools: ['shell'], replies: [{ toolCalls: [shell] }, { text: 'back' }] } }
    const place = install(engine, { agents, lease: '1s' })
    await place.daemon()
    const { runId, threadId } = await place.send('busy')
    await until('it is at work', async () => processesWith(`HOLDFAST_RUN=${runId}`)[0])
    const stopped = await place.json<{ state: string; cancelled: string[] }>(['threads', 'stop', threadId])
    expect([stopped.state, stopped.cancelled]).toEqual(['stopped', [runId]])
    expect(processesWith(`HOLDFAST_RUN=${runId}`)).toEqual([])
    const store = await place.store()
    await store.apply(acceptMessage, message('news', { threadId }))
    const ids = { messageId: newMessageId(random), runId: newRunId(random) }
    await store.apply(sendMessage, {
      ...ids,
      threadId,
      agent: 'busy',
      text: 'hi',
      key: 'hi',
      from: 'other' as ThreadId,
    })
    // Another thread is woken by the same heartbeats that leave this one alone.
    const other = await place.send('busy')
    await until('the other has a run', async () => processesWith(`HOLDFAST_RUN=${other.runId}`)[0])
    expect(await store.read(listRuns, { threadId, limit: 10 })).toHaveLength(1)
    expect(await place.json<Branch>(['threads', 'show', threadId])).toMatchObject({ doing: 'stopped', pending: 2 })
    const answer = await place.json<RunView>(['send', threadId, '--wait', 'go on'])
    expect(answer).toMatchObject({ state: 'succeeded', result: { text: 'back' } })
    expect(await store.read(messagesIn, ['pending'], 10, threadId)).toEqual([])
    // Its daemon is killed with the test, and a command outlives that: it would sleep for its five minutes.
    expect((await place.run(['runs', 'cancel', other.runId])).code).toBe(0)
    expect(processesWith(`HOLDFAST_RUN=${other.runId}`)).toEqual([])
    await assertInvariants(store)
  })
})

test('a busy thread is not removed without force; removed it leaves nothing, and its name starts clean [M14]', async () => {
  const place = install()
  const store = await withBoss(place)
  await store.apply(acceptMessage, message('a'))
  const daemon = await place.daemon()
  const child = await place.json<RunView>([
    'run',
    '--detach',
    '--thread',
    'kid',
    '--parent',
    'boss',
    '--',
    'sleep',
    '300',
  ])
  await place.reaches(child.id, 'running')
  const busy = await place.run(['threads', 'remove', 'kid'])
  expect([busy.code, busy.stderr.includes('--force')]).toEqual([4, true])
  expect((await place.run(['threads', 'remove', 'kid', '--force'])).code).toBe(0)
  expect((await place.show(child.id)).state).toBe('cancelled')
  expect(processesWith(`HOLDFAST_RUN=${child.id}`)).toEqual([])
  expect((await place.run(['threads', 'remove', 'kid'])).code).toBe(4)
  expect((await place.run(['threads', 'remove', 'nobody'])).code).toBe(3)
  const removed = await place.json<{ deadLetters: number }>(['threads', 'remove', 'boss'])
  expect(removed.deadLetters).toBe(2)
  expect((await place.json<Branch[]>(['threads', 'list'])).map(({ id }) => id)).toEqual(['child'])
  await place.run(['run', '--thread', 'boss', '--', 'true'])
  const again = await place.json<Branch & { generation: number; messages: unknown[] }>(['threads', 'show', 'boss'])
  expect(again).toMatchObject({ generation: 2, pending: 0, messages: [], children: [] })
  expect(await place.json<Drained>(['inbox', 'drain', 'boss'])).toEqual({ messages: [], remaining: 0 })
  daemon.kill('SIGKILL')
  await assertInvariants(store)
})

test('the thread of a session in its turn is removed by force, and its client goes on in a new generation [M14]', async () => {
  const place = install()
  const store = await place.store()
  const heard = { client: 'claude', sessionId: 's1' } as const
  await store.apply(sessionStarted, heard, 'startup')
  await store.apply(turnBegun, heard, 'p1')
  expect((await place.run(['threads', 'remove', 'claude-s1'])).code).toBe(4)
  expect((await place.run(['threads', 'remove', 'claude-s1', '--force'])).code).toBe(0)
  await store.apply(turnBegun, heard, 'p2')
  expect(await place.json(['threads', 'show', 'claude-s1'])).toMatchObject({ generation: 2, doing: 'busy' })
  await assertInvariants(store)
})

test('a conductor that was started again finds its children and what it has not seen; its tree can be followed', async () => {
  const place = install('sqlite', { agents: clerk })
  const store = await withBoss(place)
  await store.apply(sessionStarted, { client: 'claude', sessionId: 's1', startedFrom: BOSS }, 'startup')
  const self = { HOLDFAST_THREAD: 'boss' }
  await place.run(['run', '--parent', 'self', '--thread', 'done', '--', 'echo', 'ready'], self)
  await place.run(['run', '--parent', 'self', '--thread', 'broken', '--', 'false'], self)
  await place.run(['run', '--detach', '--parent', 'claude-s1', '--thread', 'deep', '--', 'true'])
  const shown = JSON.parse((await place.run(['threads', 'show', 'self', '--json'], self)).stdout) as Branch & {
    readonly messages: readonly MessageView[]
  }
  expect(shown.messages.map(({ kind, from, state }) => [kind, from, state])).toEqual([
    ['completion', 'done', 'pending'],
    ['error', 'broken', 'pending'],
  ])
  const tree = ({ id, doing, children }: Branch): unknown[] => [id, doing, ...children.map(tree)]
  expect(tree(shown)).toEqual([
    'boss',
    'idle',
    ['child', 'idle'],
    ['claude-s1', 'idle', ['deep', 'queued']],
    ['done', 'succeeded'],
    ['broken', 'failed (exit)'],
  ])
  const human = (await place.run(['threads', 'show', 'boss'])).stdout
  for (const line of [
    '├─ claude-s1  claude  idle',
    '│  └─ deep  command  queued',
    '└─ broken  command  failed (exit)',
    'not seen yet:',
  ]) {
    expect(human).toContain(line)
  }
  expect((await place.run(['threads', 'list'])).stdout).toMatch(/boss +conductor +idle +2/)
  const tail = place.start(['threads', 'tail', 'boss', '--children', '--json'])
  await tail.said('"deep"')
  await place.run(['run', '--parent', 'boss', '--thread', 'late', '--', 'true'])
  await tail.said('"late"')
  tail.kill('SIGKILL')
  const own = (await place.run(['threads', 'tail', 'boss', '--no-follow', '--json'])).stdout
  expect(
    own
      .trim()
      .split('\n')
      .every((line) => (JSON.parse(line) as { threadId: string }).threadId === 'boss'),
  ).toBe(true)
})

test('every thread has an inbox: what is sent to one of a command waits there, and what a run sends is labelled as its own', async () => {
  const place = install('sqlite')
  await place.run(['run', '--thread', 'boss', '--', 'true'])
  await place.run(['run', '--thread', 'helper', '--', 'true'])
  const sent = await place.run(['send', 'boss', 'how far are you?'])
  expect([sent.code, sent.stderr]).toEqual([0, expect.stringContaining('waits in the inbox of boss')])
  await place.run(['send', 'boss', 'I am the boss now'], { HOLDFAST_THREAD: 'helper' })
  const { messages } = await place.json<Drained>(['inbox', 'drain', 'boss'])
  expect(messages.map(({ kind, from }) => [kind, from])).toEqual([
    ['prompt', null],
    ['note', 'helper'],
  ])
  expect(await place.run(['send', '--wait', 'boss', 'and?'])).toMatchObject({ code: 2 })
})
