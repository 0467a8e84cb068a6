import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { LIMITS } from '../../src/base/limits.ts'
import type { ProcessIdentity } from '../../src/processes/identity.ts'
import { run } from '../../src/store/transition.ts'
import { sql } from '../../src/store/sql.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { openDeliveries } from '../../src/threads/delivery.ts'
import { messagesIn } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import type { AgentInstallation } from '../support/agents.ts'
import { fullFile } from '../support/full-file.ts'
import { PROGRAM, startProcess, until } from '../support/holdfast.ts'
import type { Ended, Running } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { BOSS, engines, install, message, tell, withBoss } from './support.ts'
import type { Drained, MessageView } from './support.ts'

/** The command line in a shell: what becomes of its output is the shell's doing. */
function shell(place: AgentInstallation, script: string): Running {
  const store = place.storeUrl === undefined ? {} : { HOLDFAST_STORE: place.storeUrl }
  const env = { HOLDFAST: PROGRAM, HOLDFAST_HOME: place.home, CONFIG: place.configuration, ...store }
  return startProcess('/bin/sh', ['-c', script], env)
}

const drained = ({ stdout }: Ended) => JSON.parse(stdout) as Drained

describe.each(engines)('a drain on $engine', ({ engine }) => {
  test('of several at once each gets what no other has, and together they get everything [M4] [inbox/effect-once]', async () => {
    const place = install(engine)
    const store = await withBoss(place)
    await tell(store, 40)
    const drains = Array.from({ length: 4 }, () => place.run(['inbox', 'drain', 'boss', '--json', '--limit', '15']))
    const ended = await Promise.all(drains)
    const rest = await place.run(['inbox', 'drain', 'boss', '--json'])
    expect([...ended, rest].map(({ code }) => code)).toEqual([0, 0, 0, 0, 0])
    const ids = [...ended, rest].flatMap((each) => drained(each).messages.map(({ id }) => id))
    expect([ids.length, new Set(ids).size]).toEqual([40, 40])
    expect(await store.read(messagesIn, ['consumed'], 100, BOSS)).toHaveLength(40)
    await assertInvariants(store)
  })

  test('killed between taking and printing gives everything back, to the next drain or by the heartbeat [M5] [inbox/never-lost]', async () => {
    const place = install(engine, { lease: '1s' })
    const store = await withBoss(place)
    // More than a pipe holds, so that it is still printing when it dies.
    await tell(store, 60, 'x'.repeat(900))
    const fifo = join(place.folder, 'fifo')
    execFileSync('mkfifo', [fifo])
    const kill = async () => {
      shell(place, `exec 3<>${fifo}; exec "$HOLDFAST" --config "$CONFIG" inbox drain boss --json >${fifo}`)
      const open = await until('it has taken them', async () => (await store.read(openDeliveries, 10))[0])
      expect(open).toMatchObject({ messages: 60, leasedBy: { kind: 'process' } })
      process.kill(((open.leasedBy as { identity: unknown }).identity as ProcessIdentity).pid, 'SIGKILL')
    }
    await kill()
    const daemon = await place.daemon()
    await until('they wait again', async () => {
      const waiting = await store.read(messagesIn, ['pending'], 100, BOSS)
      return waiting.length === 60 ? true : undefined
    })
    daemon.kill('SIGKILL')
    await daemon.ended
    await kill()
    const again = await until('the dead one was noticed', async () => {
      const next = drained(await place.run(['inbox', 'drain', 'boss', '--json']))
      return next.messages.length === 0 ? undefined : next
    })
    expect(again.messages).toHaveLength(60)
    expect(await store.read(messagesIn, ['consumed'], 100, BOSS)).toHaveLength(60)
    await assertInvariants(store)
  })
})

describe('the inbox on the command line', () => {
  test('output that cannot be written gives the messages back, and says so [M5] [M15]', async () => {
    const place = install()
    const store = await withBoss(place)
    await tell(store, 3)
    const fifo = join(place.folder, 'fifo')
    execFileSync('mkfifo', [fifo])
    const drain = '"$HOLDFAST" --config "$CONFIG" inbox drain boss'
    // A pipe whose reader has gone, and a disk that is full.
    for (const to of [
      `exec 3<>${fifo} 4>${fifo} 3<&-; ${drain} >&4`,
      `${drain} >/dev/full`,
      `${drain} --json >/dev/full`,
    ]) {
      const ended = await shell(place, to).ended
      expect(ended.code).toBe(1)
      expect(ended.stderr).toContain('inbox/not-printed')
      expect(await store.read(messagesIn, ['pending'], 10, BOSS)).toHaveLength(3)
    }
    await shell(place, `${drain} | head -c 0`).ended
    expect(await store.read(messagesIn, ['pending'], 10, BOSS)).toHaveLength(3)
    const whole = await shell(place, `${drain} >${place.folder}/out && cat ${place.folder}/out`).ended
    expect([whole.code, whole.stdout.match(/^message msg_/gm)?.length]).toEqual([0, 3])
    expect(await store.read(messagesIn, ['consumed'], 10, BOSS)).toHaveLength(3)
  })

  test('output of which only the beginning found room gives the messages back, and says so [M5] [M15]', async () => {
    const place = install()
    const store = await withBoss(place)
    await tell(store, 3, 'x'.repeat(900))
    const out = join(place.folder, 'out')
    const holdfast = '"$HOLDFAST" --config "$CONFIG"'
    for (const flag of ['', ' --json']) {
      const full = fullFile(out, 1_000)
      const ended = await shell(place, `${full.limit}; ${holdfast} inbox drain boss${flag} >>${out}`).ended
      expect([full.written(), ended.code]).toEqual([1_000, 1])
      expect(ended.stderr).toContain('inbox/not-printed')
      expect(await store.read(messagesIn, ['pending'], 10, BOSS)).toHaveLength(3)
      const fuller = fullFile(out, 100)
      const listed = await shell(place, `${fuller.limit}; ${holdfast} inbox list boss${flag} >>${out}`).ended
      expect([fuller.written(), listed.code]).toEqual([100, 1])
      expect(listed.stderr).toContain('output/not-written')
    }
    const room = fullFile(out, 100_000)
    expect((await shell(place, `${room.limit}; ${holdfast} inbox drain boss >>${out}`).ended).code).toBe(0)
    expect(room.written()).toBeGreaterThan(2_700)
    expect(await store.read(messagesIn, ['consumed'], 10, BOSS)).toHaveLength(3)
  })

  test('for people and for programs it prints the same; empty is empty; an unknown thread is an error [M12]', async () => {
    const place = install()
    const store = await withBoss(place)
    await store.apply(
      acceptMessage,
      message('a', { body: { state: 'succeeded', summary: 'two\nlines', runId: 'run_1' } }),
    )
    await store.apply(acceptMessage, message('b', { kind: 'error', body: { error: 'it broke', code: 'exit' } }))
    await store.apply(acceptMessage, message('c', { kind: 'waiting', body: { text: 'may I?' } }))
    const { delivery, ...leased } = drained(await place.run(['inbox', 'drain', 'boss', '--lease', '--json']))
    expect(leased.messages.map(({ key, state }) => [key, state])).toEqual([
      ['a', 'leased'],
      ['b', 'leased'],
      ['c', 'leased'],
    ])
    expect((await place.run(['inbox', 'release', delivery ?? ''])).code).toBe(0)
    const listed = await place.json<MessageView[]>(['inbox', 'boss'])
    expect(listed.map(({ id, state }) => [id, state])).toEqual(leased.messages.map(({ id }) => [id, 'pending']))
    const human = await place.run(['inbox', 'drain', 'boss'])
    expect(human.code).toBe(0)
    for (const { id, kind, from, key, state, createdAt, body } of leased.messages) {
      const said = Object.values(body).flatMap((value) => String(value).split('\n'))
      for (const part of [id, kind, from ?? '', key, state, createdAt, ...said]) expect(human.stdout).toContain(part)
    }
    expect(await place.run(['inbox', 'drain', 'boss'])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(drained(await place.run(['inbox', 'drain', 'boss', '--json']))).toEqual({ messages: [], remaining: 0 })
    const unknown = ['drain nobody', 'nobody', 'ack dlv_x', 'release dlv_x', 'show msg_x', 'dead show msg_x']
    const answers = await Promise.all(unknown.map((words) => place.run(['inbox', ...words.split(' ')])))
    expect(answers.map(({ code, stdout }) => [code, stdout])).toEqual(unknown.map(() => [3, '']))
    expect((await place.run(['inbox', 'drain', 'boss', '--limit', '0'])).code).toBe(2)
  })

  test('what is taken by hand is acknowledged by hand, once, and comes back when it is forgotten', async () => {
    const place = install()
    const store = await withBoss(place)
    await tell(store, 3)
    const lease = async () => drained(await place.run(['inbox', 'drain', 'boss', '--lease', '--json', '--limit', '2']))
    const first = await lease()
    expect([first.messages.length, first.remaining]).toEqual([2, 1])
    expect((await place.run(['inbox', 'ack', first.delivery ?? ''])).code).toBe(0)
    expect((await place.run(['inbox', 'ack', first.delivery ?? ''])).code).toBe(0)
    expect((await place.run(['inbox', 'release', first.delivery ?? ''])).code).toBe(4)
    const second = await lease()
    await store.apply(function* () {
      yield* run(sql`update messages set leased_at = leased_at - ${LIMITS.deliveryByHandMs} where state = 'leased'`)
    })
    expect((await lease()).messages.map(({ id }) => id)).toEqual(second.messages.map(({ id }) => id))
    expect((await place.run(['inbox', 'ack', second.delivery ?? ''])).code).toBe(3)
    await assertInvariants(store)
  })

  test('a long text is cut in the inbox and whole on demand [M13]', async () => {
    const place = install()
    const store = await withBoss(place)
    const whole = `${'ö'.repeat(20_000)}the end`
    await store.apply(acceptMessage, message('long', { body: { summary: whole } }))
    await store.apply(acceptMessage, message('short'))
    const { messages } = drained(await place.run(['inbox', 'drain', 'boss', '--json']))
    expect(messages.map(({ key }) => key)).toEqual(['long', 'short'])
    expect(Buffer.byteLength(String(messages[0]?.body['summary']))).toBeLessThanOrEqual(LIMITS.messageBytes)
    const shown = await place.run(['inbox', 'show', messages[0]?.id ?? '', '--attachment'])
    expect(shown.stdout).toBe(`${whole}\n`)
    expect((await place.run(['inbox', 'show', messages[0]?.id.slice(0, -1) ?? ''])).stdout).toContain('the end')
  })

  test('what was replaced can be listed, and every state is counted [M2]', async () => {
    const place = install()
    const store = await withBoss(place)
    for (const key of ['w1', 'w2', 'w3']) await store.apply(acceptMessage, message(key, { kind: 'waiting' }))
    await tell(store, 1)
    const replaced = await place.json<MessageView[]>(['inbox', 'list', 'boss', '--state', 'replaced'])
    expect(replaced.map(({ key }) => key)).toEqual(['w1', 'w2'])
    const { messages } = await place.json<{ messages: Record<string, number> }>(['status'])
    expect(messages).toEqual({ pending: 2, replaced: 2 })
  })

  test('"self" is whom the client says, else the run, and never somebody else [M12]', async () => {
    const place = install()
    const store = await withBoss(place)
    await tell(store, 1)
    const self = (env: Record<string, string>) => place.run(['inbox', 'list', 'self', '--json'], env)
    expect((await self({})).code).toBe(2)
    expect(JSON.parse((await self({ HOLDFAST_THREAD: 'boss' })).stdout)).toHaveLength(1)
    expect((await self({ HOLDFAST_THREAD: 'gone' })).code).toBe(3)
    // A client whose hooks are not installed, inside of somebody else's thread.
    expect((await self({ HOLDFAST_THREAD: 'boss', CLAUDE_CODE_SESSION_ID: 's9' })).code).toBe(3)
    await store.apply(openThread, 'claude-s1' as never, 'claude', null)
    const wake = JSON.stringify({ kind: 'tmux', socket: '/tmp/tmux', pane: '%3' })
    const session = (id: string, client: string, thread: string) =>
      store.apply(function* () {
        yield* run(sql`insert into sessions (id, client, session_id, thread_id, generation, state, wake, started_at, updated_at)
          values (${`${client}:${id}`}, ${client}, ${id}, ${thread}, 1, 'idle', ${wake}, 1, 1)`)
      })
    await session('s1', 'claude', 'boss')
    expect(JSON.parse((await self({ HOLDFAST_THREAD: 'child', CLAUDE_CODE_SESSION_ID: 's1' })).stdout)).toHaveLength(1)
    expect(JSON.parse((await self({ TMUX: '/tmp/tmux,1,0', TMUX_PANE: '%3' })).stdout)).toHaveLength(1)
    expect((await self({ TMUX: '/tmp/other,1,0', TMUX_PANE: '%3' })).code).toBe(2)
    // Codex inside of Claude is the child; two that have nothing to do with each other cannot be told apart.
    await session('c1', 'codex', 'child')
    expect(JSON.parse((await self({ CLAUDE_CODE_SESSION_ID: 's1', CODEX_THREAD_ID: 'c1' })).stdout)).toEqual([])
    expect((await self({ TMUX: '/tmp/tmux,1,0', TMUX_PANE: '%3' })).code).toBe(2)
    await session('c2', 'codex', 'claude-s1')
    expect((await self({ CLAUDE_CODE_SESSION_ID: 's1', CODEX_THREAD_ID: 'c2' })).code).toBe(2)
    // A run inside of a session is not that session.
    const inner = ['run', '--', 'sh', '-c', 'echo "[$CLAUDE_CODE_SESSION_ID]"']
    expect((await place.run(inner, { CLAUDE_CODE_SESSION_ID: 's1' })).stdout).toBe('[]\n')
  })
})
