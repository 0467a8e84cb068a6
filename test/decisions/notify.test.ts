import { createHmac } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { describe, expect, onTestFinished, test } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { eventsAfter, record } from '../../src/events/event.ts'
import type { Channel, Message } from '../../src/notify/channel.ts'
import { desktopChannel } from '../../src/notify/desktop.ts'
import { Notifier } from '../../src/notify/notifier.ts'
import { dueNotices, noticesGivenUp } from '../../src/notify/notice.ts'
import { openChannels } from '../../src/notify/open.ts'
import { ntfyChannel, webhookChannel } from '../../src/notify/post.ts'
import { addSchedule, pauseSchedule, resumeSchedule } from '../../src/schedule/edit.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import { buryMessage } from '../../src/threads/dead-letter.ts'
import type { Store } from '../../src/store/store.ts'
import { AgentInstallation } from '../support/agents.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { answer, strict, waitingIn } from './waiting.ts'

interface Got {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A server of somebody else's, on the loopback. */
async function listener(status: () => number = () => 200) {
  const got: Got[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      got.push({ path: request.url ?? '', headers: request.headers, body })
      response.writeHead(status(), { location: 'http://127.0.0.1:1/elsewhere' }).end('thanks')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { got, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const recorder = (name = 'test'): Channel & { readonly sent: Message[]; fail: string | undefined } => {
  const sent: Message[] = []
  const channel = {
    name,
    sent,
    fail: undefined as string | undefined,
    send: (message: Message) => {
      sent.push(message)
      return channel.fail === undefined ? Promise.resolve() : Promise.reject(new Error(channel.fail))
    },
  }
  return channel
}

function notifier(store: Store, channels: readonly Channel[], window?: string) {
  const warned: string[] = []
  const made = new Notifier({
    store,
    clock: systemClock,
    warn: (text) => void warned.push(text),
    channels,
    window: () => window,
  })
  onTestFinished(() => made.stop())
  // Twice: the first may join a look that a commit has begun already.
  const look = async () => {
    await made.look()
    await made.look()
  }
  return { look, warned, stop: () => made.stop() }
}

describe.each(engines)('telling people outside, on $name', (engine) => {
  test('an approval that is asked for, by each channel, once; and not what nobody needs to know', async () => {
    const { stage, store, approvals } = await waitingIn(await strict(engine), ['a', 'b'])
    const [one, two] = [recorder('one'), recorder('two')]
    // Decided before anybody looked: nobody is bothered.
    await store.apply(decideApproval, approvals[1]!.id, answer('deny', approvals[1]!.digest))
    const { look } = notifier(store, [one, two], 'http://127.0.0.1:4780')
    await Promise.all([look(), look()])
    await look()
    for (const { sent } of [one, two]) {
      expect(sent.map(({ notice, link }) => ({ ...notice, link }))).toEqual([
        expect.objectContaining({
          kind: 'approval',
          title: 'clerk asks whether it may use append',
          command: `holdfast approvals show ${approvals[0]!.id}`,
          agent: 'clerk',
          tool: 'append',
          threadId: stage.threadId,
          link: `http://127.0.0.1:4780/approvals/${approvals[0]!.id}`,
        }),
      ])
      // Arguments are nobody else's.
      expect(JSON.stringify(sent)).not.toContain('"entry"')
    }
    await assertInvariants(store)
  })

  test('a doubt, a stopped agent and a letter that needs a person', async () => {
    const { stage, store } = await strict(engine)
    stage.policy = [{ decision: 'allow' }]
    stage.perform = () => Promise.reject(new Error('cut'))
    stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Hm.' }]
    await stage.send('go')
    await stage.finished(await stage.claim())
    const authFails = {
      kind: 'failed',
      code: 'auth',
      error: '401',
      spent: { inputTokens: 0, outputTokens: 0, costMicrousd: 0 },
    }
    stage.answer = () => Promise.resolve(authFails as never)
    for (let i = 0; i < LIMITS.breakerFailures; i++) {
      stage.threadId = `auth ${i}` as ThreadId
      await stage.send(`go ${i}`)
      await stage.finished(await stage.claim())
    }
    stage.threadId = 'letters' as ThreadId
    const { message: letter } = await stage.send('a letter')
    const { message: quiet } = await stage.send('another')
    await store.apply(buryMessage, letter, 'unknown recipient')
    await store.apply(buryMessage, quiet, 'no-notify')
    const channel = recorder()
    const { look } = notifier(store, [channel])
    await look()
    expect(channel.sent.map(({ notice }) => [notice.kind, notice.title])).toEqual([
      ['doubt', 'append of clerk was cut off: it may or may not have happened'],
      ['breaker', 'clerk is stopped: its provider refuses the credentials'],
      ['dead-letter', 'a message could not be delivered: unknown recipient'],
    ])
  })

  test('a firing that failed is told while it is news, and not when somebody turns notices on much later', async () => {
    const { store, clock } = await strict(engine)
    const failed = (name: string) => ({
      type: 'occurrence.settled' as const,
      data: { scheduleId: 'sch_1', name, state: 'failed', reason: 'exit', told: 'operator' },
    })
    await store.apply(record, failed('old'))
    clock.step(LIMITS.noticeNewsMs + 1)
    await store.apply(record, failed('new'))
    const channel = recorder()
    await notifier(store, [channel]).look()
    expect(channel.sent.map(({ notice }) => notice.title)).toEqual(['a firing of new failed: exit'])
  })

  test('a job that paused itself is told as long as it is paused for that, however late', async () => {
    const { store, clock } = await strict(engine)
    const reason = '3 failures in a row'
    const pause = async (name: string) => {
      const scheduleId = `sch_${name}` as ScheduleId
      const rule = { kind: 'every', everyMs: 60_000, anchor: 0 } as const
      const target = { kind: 'command', argv: ['true'], cwd: '/' } as const
      const job = { id: scheduleId, name, kind: 'job', rule, target, madeBy: 'ann', options: DEFAULT_OPTIONS } as const
      await store.apply(addSchedule, job)
      await store.apply(pauseSchedule, scheduleId, 'a test', reason)
      const data = { scheduleId, name, reason, by: 'itself', told: 'operator' }
      await store.apply(record, { type: 'schedule.paused', data })
      return scheduleId
    }
    await pause('forgotten')
    await store.apply(resumeSchedule, await pause('mended'), 'ann')
    clock.step(LIMITS.noticeNewsMs + 1)
    const channel = recorder()
    await notifier(store, [channel]).look()
    expect(channel.sent.map(({ notice }) => notice.title)).toEqual([`the job forgotten is paused: ${reason}`])
  })

  test('what cannot be sent is tried five times, ever later, and then given up where everybody sees it', async () => {
    const { store, clock, approvals } = await waitingIn(await strict(engine), ['a'])
    const channel = recorder()
    channel.fail = 'it answered with status 500'
    const { look, warned } = notifier(store, [channel])
    const waits = Array.from({ length: LIMITS.noticeTries - 1 }, (_, index) => LIMITS.noticeFirstMs * 2 ** index)
    await look()
    for (const wait of waits) {
      clock.step(wait - 1)
      const before = channel.sent.length
      await look()
      expect(channel.sent).toHaveLength(before)
      clock.step(1)
      await look()
      expect(channel.sent).toHaveLength(before + 1)
    }
    clock.step(86_400_000)
    await look()
    expect(channel.sent).toHaveLength(LIMITS.noticeTries)
    expect(new Set(channel.sent.map(({ id }) => id)).size).toBe(1)
    expect(warned).toEqual([expect.stringContaining('status 500')])
    expect(await store.read(noticesGivenUp, 10, 30 * 86_400_000)).toMatchObject([
      { channel: 'test', error: 'it answered with status 500' },
    ])
    const given = (await store.read(eventsAfter, 0, 1_000)).filter(({ type }) => type === 'notice.given_up')
    expect(given).toHaveLength(1)
    // Nobody was reached, and nothing was decided by that.
    expect(await store.read(pendingApprovals, 10)).toMatchObject([{ id: approvals[0]!.id }])
    await assertInvariants(store)
  })

  test('sent, and dead before it was recorded: it is sent again, under the same id', async () => {
    const { store, clock } = await waitingIn(await strict(engine), ['a'])
    const hanging: Channel = {
      name: 'test',
      send: (_, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    }
    const first = notifier(store, [hanging])
    void first.look()
    await until('it is being sent', async () => ((await store.read(dueNotices, 10)).length === 0 ? true : undefined))
    await first.stop()
    clock.step(LIMITS.noticeFirstMs)
    const channel = recorder()
    await notifier(store, [channel]).look()
    expect(channel.sent).toHaveLength(1)
  })

  test('a channel that is not there any more is said to be missing; without any, nothing is stored and all waits', async () => {
    const { store, clock } = await waitingIn(await strict(engine), ['a'])
    await notifier(store, []).look()
    expect(await store.read(dueNotices, 10)).toEqual([])
    const old = recorder('old')
    old.fail = 'no'
    await notifier(store, [old]).look()
    for (let i = 0; i < LIMITS.noticeTries; i++) {
      clock.step(LIMITS.noticeFirstMs * 32)
      await notifier(store, [recorder('new')]).look()
    }
    expect(await store.read(noticesGivenUp, 10, 30 * 86_400_000)).toMatchObject([
      { channel: 'old', error: expect.stringContaining('no such channel') as string },
    ])
    expect(await store.read(pendingApprovals, 10)).toHaveLength(1)
  })
})

const message: Message = {
  id: '7 webhook',
  link: 'http://127.0.0.1:4780/approvals/apr_1',
  notice: {
    seq: 7,
    at: '2026-01-01T00:00:00.000Z',
    kind: 'approval',
    title: 'clerk asks whether it may use append',
    command: 'holdfast approvals show apr_1',
    path: '/approvals/apr_1',
    threadId: 't',
  },
}
const never = new AbortController().signal

describe('the channels', () => {
  test('a webhook is signed over time and body, and does not show its secret', async () => {
    const { got, url } = await listener()
    const channel = webhookChannel({ url: `${url}/hook?key=abc`, secret: 'shh' }, systemClock)
    expect(channel.name).toBe(`webhook ${url}/hook`)
    await channel.send(message, never)
    const [{ path, headers, body } = { path: '', headers: {}, body: '' }] = got
    expect(path).toBe('/hook?key=abc')
    expect(JSON.parse(body)).toEqual({ id: message.id, ...message.notice, link: message.link })
    const timestamp = String(headers['x-holdfast-timestamp'])
    expect(Math.abs(Number(timestamp) - Date.now() / 1_000)).toBeLessThan(60)
    const expected = createHmac('sha256', 'shh').update(`${timestamp}.${body}`).digest('hex')
    expect(headers['x-holdfast-signature']).toBe(`v1=${expected}`)
    expect(JSON.stringify(got)).not.toContain('shh')
  })

  test('ntfy gets words, a link and a token', async () => {
    const { got, url } = await listener()
    await ntfyChannel({ url: `${url}/topic`, token: 'tk_1' }).send(message, never)
    expect(got).toMatchObject([
      { path: '/topic', headers: { title: 'Holdfast', click: message.link, authorization: 'Bearer tk_1' } },
    ])
    expect(got[0]!.body).toBe(`${message.notice.title}\nthread t\n${message.notice.command}\n${message.link}`)
  })

  test.each([500, 404, 302])('status %i is not taken, and nobody is followed elsewhere', async (status) => {
    const { got, url } = await listener(() => status)
    await expect(ntfyChannel({ url }).send(message, never)).rejects.toThrow(`status ${status}`)
    expect(got).toHaveLength(1)
  })

  test('the desktop is told by notify-send, without markup; where there is none, that is said', async () => {
    const folder = temporaryFolder()
    const [bin, said] = [join(folder, 'bin'), join(folder, 'said')]
    mkdirSync(bin)
    writeFileSync(join(bin, 'notify-send'), `#!/bin/sh\nprintf '%s|' "$@" > ${said}\n`)
    chmodSync(join(bin, 'notify-send'), 0o755)
    const bold = { ...message, notice: { ...message.notice, threadId: '<b>t</b>' } }
    await desktopChannel(systemClock, { PATH: `${bin}:/bin:/usr/bin` }).send(bold, never)
    expect(readFileSync(said, 'utf8')).toContain(
      '--|clerk asks whether it may use append|thread &lt;b&gt;t&lt;/b&gt;\n',
    )
    await expect(desktopChannel(systemClock, { PATH: folder }).send(message, never)).rejects.toThrow('notify-send')
  })

  test('a secret comes from a variable; one that is not set is said at once', () => {
    const config = [{ kind: 'webhook', url: 'https://example.com/', secret: '${HOOK_SECRET}' }] as const
    expect(openChannels(config, systemClock, { HOOK_SECRET: 'x' })).toHaveLength(1)
    expect(() => openChannels(config, systemClock, {})).toThrow('HOOK_SECRET')
  })
})

test('a daemon tells, and goes on when the answer comes', async () => {
  const { got, url } = await listener()
  const place = new AgentInstallation(
    {
      agents: {
        clerk: {
          replies: [{ toolCalls: [{ tool: 'shell', input: { command: 'true' } }] }, { text: 'Done.' }],
          tools: ['shell'],
        },
      },
      policy: [],
      notify: [{ webhook: `${url}/hook`, secret: '${HOOK_SECRET}' }],
    },
    { env: { HOOK_SECRET: 'shh' } },
  )
  await place.up()
  const { runId, threadId } = await place.send('clerk')
  const [first] = await until('somebody is told', async () => (got.length > 0 ? got : undefined))
  const told = JSON.parse(first!.body) as { readonly approvalId: string; readonly link: string }
  expect(told).toMatchObject({ kind: 'approval', agent: 'clerk', tool: 'shell', threadId, runId })
  expect(told.link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/approvals\/apr_/)
  const { code, stderr } = await place.run(['approvals', 'approve', told.approvalId])
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(await place.ended(runId)).toMatchObject({ state: 'succeeded' })
})
