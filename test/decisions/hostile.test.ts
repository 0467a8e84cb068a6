import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { jsonText, visible, visibleLine } from '../../src/base/visible.ts'
import { main } from '../../src/cli/main.ts'
import { Notifier } from '../../src/notify/notifier.ts'
import { desktopChannel } from '../../src/notify/desktop.ts'
import { ntfyChannel, webhookChannel } from '../../src/notify/post.ts'
import { createRuntime } from '../../src/runtime.ts'
import { startServer } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { homePaths } from '../../src/workers/home.ts'
import { Stage } from '../support/stage.ts'
import { HOSTILE, rawIn } from './hostile.ts'

const EVIL_THREAD = 'evil\u001b[2J\u202e\u200b\r thread' as ThreadId

/** What a model says: some of each, and not endless. */
const WORDS = HOSTILE.filter(({ length }) => length < 400)
  .slice(0, 60)
  .join('')

/** Everything that an action can hold is hostile: its arguments, what it came to, what people and models say of it. */
async function fill(store: Store) {
  const stage = new Stage(store)
  stage.threadId = EVIL_THREAD
  stage.policy = []
  const whole = Object.fromEntries(HOSTILE.map((text, index) => [`${index}`, text.toWellFormed()]))
  stage.replies = [
    {
      text: WORDS,
      calls: [
        ...HOSTILE.map((entry) => ['shout', { entry }] as const),
        ...HOSTILE.slice(0, 60).map((name) => [name, {}] as const),
        ['shout', { entry: 'all of it', whole }],
      ],
    },
  ]
  const asking = (await stage.send(WORDS.toWellFormed().replaceAll('\0', ''), 'k')).runId!
  expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
  const approvals = await store.read(pendingApprovals, 1_000)
  expect(approvals.length).toBeGreaterThan(150)

  const other = new Stage(store)
  other.threadId = 'acting' as ThreadId
  other.doubts = 'park'
  let nth = 0
  other.perform = (entry) => {
    nth += 1
    if (nth % 3 === 0) return Promise.resolve({ kind: 'failed', error: entry })
    return nth % 3 === 1 ? Promise.reject(new Error(entry)) : Promise.resolve({ kind: 'done', result: { entry } })
  }
  other.replies = [{ text: WORDS, calls: HOSTILE.map((entry) => ['shout', { entry }] as const) }]
  const acting = (await other.send('go', 'k')).runId!
  expect(await other.run(await other.claim())).toEqual({ kind: 'left' })
  const doubts = await store.read(openDoubts, 1_000)
  expect(doubts.length).toBeGreaterThan(50)
  await store.apply(resolveDoubt, doubts[0]!.id, { kind: 'give-up', by: HOSTILE[2]!, why: HOSTILE[17]! })
  await store.apply(resolveDoubt, doubts[1]!.id, { kind: 'happened', by: 'ann', result: HOSTILE[3]! })
  const [denied] = approvals
  await store.apply(decideApproval, denied!.id, {
    kind: 'deny',
    digest: denied!.digest,
    by: `ann ${HOSTILE[1]}`,
    via: `test ${HOSTILE[16]}`,
    note: HOSTILE[0]!,
  })
  return {
    asking,
    acting,
    approvals: [approvals.at(-1)!.id, ...approvals.slice(0, 12).map(({ id }) => id)],
    doubts: doubts.slice(0, 12).map(({ id }) => id),
  }
}

let home = ''
let made: { asking: RunId; acting: RunId; approvals: readonly string[]; doubts: readonly string[] }

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  const store = await openSqliteStore({ path: homePaths(home).database })
  made = await fill(store)
  await store.close()
})

afterAll(() => rmSync(home, { recursive: true, force: true }))

/** What the command line writes, to either side. */
async function said(...argv: readonly string[]): Promise<string> {
  let written = ''
  const write = (chunk: unknown) => {
    written += String(chunk)
    return true
  }
  const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write').mockImplementation(write))
  try {
    await main(['--home', home, ...argv])
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return written
}

test('there are 300 hostile strings, and the check would find them', () => {
  expect(new Set(HOSTILE).size).toBeGreaterThan(290)
  expect(HOSTILE).toHaveLength(300)
  expect(HOSTILE.filter((text) => rawIn(text) !== undefined).length).toBeGreaterThan(280)
})

test('each of them, made visible: nothing raw, and nothing lost', () => {
  for (const text of HOSTILE) {
    expect(rawIn(visible(text))).toBeUndefined()
    expect(rawIn(visibleLine(text))).toBeUndefined()
    expect(visibleLine(text)).not.toMatch(/[\n\t]/)
    expect(rawIn(jsonText({ text }, 2))).toBeUndefined()
    expect(JSON.parse(jsonText({ [text]: text }))).toEqual({ [text]: text })
  }
})

describe('the command line', () => {
  const commands: readonly (readonly [string, () => readonly (readonly string[])[]])[] = [
    ['approvals list', () => [['approvals', 'list'], ['approvals']]],
    ['approvals show', () => made.approvals.map((id) => ['approvals', 'show', id])],
    ['doubts', () => [['doubts'], ...made.doubts.map((id) => ['doubts', 'show', id])]],
    [
      'runs show',
      () => [
        ['runs', 'list'],
        ['runs', 'show', made.asking],
        ['runs', 'show', made.acting],
      ],
    ],
    [
      'threads show',
      () => [
        ['threads', 'list'],
        ['threads', 'show', EVIL_THREAD],
        ['threads', 'show', 'acting'],
      ],
    ],
    ['runs statement', () => [made.asking, made.acting].map((id) => ['runs', 'statement', id])],
    [
      'runs events',
      () => [
        ['runs', 'events'],
        ['runs', 'events', made.asking],
      ],
    ],
    ['status', () => [['status']]],
    [
      'an error',
      () => [
        ['runs', 'show', '\u001b[2J\u202e'],
        ['threads', 'show', HOSTILE[3]!],
      ],
    ],
  ]
  test.each(commands)('%s', async (_title, argvs) => {
    for (const argv of argvs()) {
      for (const flags of [[], ['--json']]) {
        const text = await said(...argv, ...flags)
        expect(text.length).toBeGreaterThan(5)
        expect(rawIn(text), [...argv, ...flags].join(' ')).toBeUndefined()
      }
    }
  })

  test('a list has one line for each, and none is endless; what is shown is whole', async () => {
    const lines = (await said('approvals', 'list')).trimEnd().split('\n')
    expect(lines).toHaveLength(101)
    for (const line of lines) expect(line.length).toBeLessThan(400)
    const [whole] = made.approvals
    expect((await said('approvals', 'show', whole!)).length).toBeGreaterThan(20_000)
  })
})

async function startDaemon() {
  const runtime = await createRuntime({ home })
  const server = await startServer({
    runtime,
    port: 0,
    kept: [{ by: 'the owner', scopes: ['admin'], read: () => Promise.resolve('token') }],
    warn: () => {},
  })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  const headers = { Authorization: 'Bearer token' }
  return { runtime, get: (path: string) => fetch(`${server.url}/api/v1${path}`, { headers }) }
}

test('HTTP: what is answered is JSON without any of them raw, and says the same', async () => {
  const { get } = await startDaemon()
  const paths = [
    '/threads',
    `/threads/${encodeURIComponent(EVIL_THREAD)}`,
    '/threads/acting',
    '/runs',
    `/runs/${made.asking}`,
    `/runs/${made.acting}`,
    '/approvals',
    `/approvals/${made.approvals[0]}`,
    '/doubts',
    `/runs/${encodeURIComponent('\u001b[2J\u202e')}`,
  ]
  for (const path of paths) {
    const text = await (await get(path)).text()
    expect(rawIn(text), path).toBeUndefined()
    expect(JSON.parse(text), path).toBeTypeOf('object')
  }
  const stream = (await get('/events?after=0')).body!.getReader()
  const decoder = new TextDecoder()
  for (let frames = ''; !frames.includes('action.settled');) {
    frames += decoder.decode((await stream.read()).value)
    expect(rawIn(frames)).toBeUndefined()
  }
  await stream.cancel()
})

test('notifications: what is posted and what the desktop is given', async () => {
  const got: string[] = []
  const server = createServer((request, response) => {
    got.push(JSON.stringify(request.rawHeaders))
    request.on('data', (chunk: Buffer) => got.push(chunk.toString()))
    request.on('end', () => response.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { runtime } = await startDaemon()
  const desktop = desktopChannel(systemClock, { PATH: '/nowhere' })
  const channels = [webhookChannel({ url, secret: 's' }, systemClock), ntfyChannel({ url: `${url}t` }), desktop]
  const warned: string[] = []
  const warn = (text: string) => void warned.push(text)
  const { store, clock } = runtime
  const notifier = new Notifier({ store, clock, warn, channels, window: () => 'http://127.0.0.1:1' })
  await notifier.look()
  await notifier.stop()
  expect(got.length).toBeGreaterThan(100)
  expect(got.join('')).toContain('evil\\\\u{1b}')
  for (const text of [...got, ...warned]) expect(rawIn(text)).toBeUndefined()
})
