import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { jsonText, visible, visibleLine } from '../../src/base/visible.ts'
import { main } from '../../src/cli/main.ts'
import { Notifier } from '../../src/notify/notifier.ts'
import { desktopChannel } from '../../src/notify/desktop.ts'
import { ntfyChannel, webhookChannel } from '../../src/notify/post.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { homePaths } from '../../src/workers/home.ts'
import { TOKEN, serve } from '../server/support.ts'
import { EVIL_THREAD, WORDS, fill } from './hostile-world.ts'
import type { HostileWorld } from './hostile-world.ts'
import { HOSTILE, rawIn } from './hostile.ts'

let home = ''
let made: HostileWorld

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
        ['threads', 'tail', EVIL_THREAD, '--no-follow'],
      ],
    ],
    ['inbox', () => [['inbox', 'list', EVIL_THREAD, '--state', 'consumed']]],
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

  test('what is decided, and what comes of it', async () => {
    const { decided, doubts } = made
    const note = WORDS.toWellFormed().replaceAll('\0', '')
    const argvs = [
      ['approvals', 'always', decided[0]!],
      ['approvals', 'always', decided[0]!, '--yes', '--note', note],
      ['approvals', 'deny', decided[0]!],
      ['approvals', 'skip', decided[1]!, '--note', note],
      ['approvals', 'approve', decided[2]!, '--digest', note],
      ['approvals', 'approve', decided[2]!, '--note', note],
      ['approvals', 'edit', decided[3]!, '--input', note],
      ['approvals', 'show', decided[2]!],
      ['doubts', 'resolve', doubts[2]!, '--happened', '--result', JSON.stringify(note), '--why', note],
      ['doubts', 'resolve', doubts[2]!, '--give-up'],
      ['doubts', 'show', doubts[2]!],
      ['actions', 'again', doubts[2]!],
      ['policy', 'rules'],
      ['runs', 'statement', made.acting],
    ]
    for (const [index, argv] of argvs.entries()) {
      const text = await said(...argv, ...(index % 2 === 0 ? [] : ['--json']))
      expect(text.length).toBeGreaterThan(5)
      expect(rawIn(text), argv.slice(0, 2).join(' ')).toBeUndefined()
    }
    expect(await said('policy', 'rules')).toContain('clerk')
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
  const store = await openSqliteStore({ path: homePaths(home).database })
  onTestFinished(() => store.close())
  const { url, live } = await serve(store)
  const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }
  const get = (path: string) => fetch(`${url}/api/v1${path}`, { headers })
  const post = (path: string, body: unknown) =>
    fetch(`${url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { store, get, post, live }
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
    `/doubts/${made.doubts[4]}`,
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

test('HTTP: what is decided with them, and what is being said, word by word', async () => {
  const { get, post, live } = await startDaemon()
  const person = { note: HOSTILE[0]!, by: HOSTILE[16]! }
  const { digest } = (await (await get(`/approvals/${made.decided[4]}`)).json()) as { readonly digest: string }
  const answers = [
    await post(`/approvals/${made.decided[4]}`, { decision: 'deny', digest: HOSTILE[3]!, ...person }),
    await post(`/approvals/${made.decided[4]}`, { decision: 'deny', digest, ...person }),
    await post(`/approvals/${made.decided[4]}`, { decision: 'deny', digest }),
    await post(`/doubts/${made.doubts[5]}`, {
      resolution: 'happened',
      result: HOSTILE,
      why: HOSTILE[1]!,
      by: HOSTILE[2]!,
    }),
    await post(`/doubts/${made.doubts[5]}`, { resolution: HOSTILE[4]! }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([409, 200, 409, 200, 400])
  for (const answer of answers) expect(rawIn(await answer.text())).toBeUndefined()
  const reader = (await get('/events?after=0')).body!.getReader()
  const decoder = new TextDecoder()
  live({ kind: 'text', runId: made.asking, threadId: EVIL_THREAD, agent: 'clerk', delta: WORDS })
  for (let frames = ''; !frames.includes('event: text');) {
    frames += decoder.decode((await reader.read()).value)
    expect(rawIn(frames)).toBeUndefined()
  }
  await reader.cancel()
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
  const { store } = await startDaemon()
  const desktop = desktopChannel(systemClock, { PATH: '/nowhere' })
  const channels = [webhookChannel({ url, secret: 's' }, systemClock), ntfyChannel({ url: `${url}t` }), desktop]
  const warned: string[] = []
  const warn = (text: string) => void warned.push(text)
  const notifier = new Notifier({ store, clock: systemClock, warn, channels, window: () => 'http://127.0.0.1:1' })
  await notifier.look()
  await notifier.stop()
  expect(got.length).toBeGreaterThan(100)
  expect(got.join('')).toContain('evil\\\\u{1b}')
  // A link leads to the matter itself.
  expect(got.join('')).toContain(`http://127.0.0.1:1/approvals/${made.approvals[3]}`)
  for (const text of [...got, ...warned]) expect(rawIn(text)).toBeUndefined()
})
