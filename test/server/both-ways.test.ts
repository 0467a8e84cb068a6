import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { AgentInstallation } from '../support/agents.ts'
import { Installation, until } from '../support/holdfast.ts'
import type { Ended } from '../support/holdfast.ts'
import { typed } from './in-process.ts'

interface Item {
  readonly id: string
  readonly digest: string
}

/** How old something is, how far ahead, and what time it is now depends on when one asks; and so does how wide that is. */
const ageless = ({ code, stdout, stderr }: Ended) => ({
  code,
  stdout: stdout
    .replaceAll(/\d+[smhd] ago */g, 'AGE ')
    .replaceAll(/\bin \d+[smhd]\b */g, 'AHEAD ')
    .replaceAll(/▸ .* now$/gm, '▸ NOW'),
  stderr,
})

/** An agent that wants to write two things, a daemon that carries it out, and somebody elsewhere who has only its address. */
async function both() {
  const here = new AgentInstallation({
    agents: {
      clerk: {
        replies: [
          { text: 'I would.', toolCalls: ['a', 'b'].map((entry) => ({ tool: 'note', input: { entry } })) },
          { text: 'Done.' },
        ],
        tools: ['note'],
      },
    },
    tools: {
      note: {
        effect: 'write',
        description: 'Append one entry',
        input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
        command: ['cat'],
      },
    },
    policy: [],
    lease: '2s',
  })
  const daemon = here.start(['up', '--port', '0'])
  await daemon.said('holdfast: window:')
  const { url } = JSON.parse(readFileSync(join(here.home, 'daemon.json'), 'utf8')) as { url: string }
  const token = readFileSync(join(here.home, 'token'), 'utf8').trim()
  const elsewhere = { HOLDFAST_HOME: new Installation().home, HOLDFAST_URL: url, HOLDFAST_TOKEN: token }
  const there = (...args: string[]) => typed(args, elsewhere)
  const local = (...args: string[]) => typed(['--config', here.configuration, ...args], { HOLDFAST_HOME: here.home })
  const same = async (...args: string[]): Promise<Ended> => {
    const [one, other] = [await local(...args), await there(...args)]
    expect({ args, ...ageless(other) }).toEqual({ args, ...ageless(one) })
    return one
  }
  return { here, there, same, local, url }
}

const SCHEDULE_MISTAKES = [
  ['schedule', 'show', 'nothing'],
  ['schedule', 'add', 'nightly', '--every', '1h', '--agent', 'clerk', 'again'],
  ['schedule', 'add', 'other', '--agent', 'clerk', 'never'],
  ['schedule', 'add', 'other', '--in', '1h', '--agent', 'nobody', 'hello'],
  ['schedule', 'edit', 'nightly'],
  ['followup', 'cancel', 'nightly'],
]

test('a daemon elsewhere is asked the same and answers the same, for people and for programs', async () => {
  const { here, there, same } = await both()
  const sent = JSON.parse((await there('--json', 'send', '--agent', 'clerk', 'go')).stdout) as {
    threadId: string
    runId: string
  }
  const { threadId, runId } = sent
  await here.reaches(runId, 'parked')
  const [first] = JSON.parse((await same('--json', 'approvals', 'list')).stdout) as [Item, Item]
  for (const args of [
    [
      'schedule',
      'add',
      'nightly',
      '--cron',
      '30 2 * * *',
      '--tz',
      'Europe/Berlin',
      '--agent',
      'clerk',
      'the',
      'report',
    ],
    ['followup', 'add', threadId, '--in', '2h', 'and', 'then?'],
  ])
    expect([args[0], (await there(...args)).code]).toEqual([args[0], 0])
  const looks = [
    ['schedule', 'list'],
    ['schedule', 'show', 'nightly'],
    ['schedule', 'occurrences'],
    ['schedule', 'edit', 'nightly', '--tz', 'UTC', '--dry-run'],
    ['schedule', 'add', 'weekly', '--every', '7d', '--anchor', '2100-01-01T00:00Z', '--dry-run'],
    ['followup', 'list', threadId],
    ['runs', 'list'],
    ['runs', 'list', '--state', 'parked', 'running', '--thread', threadId, '--limit', '3'],
    ['runs', 'show', runId],
    ['runs', 'show', runId.slice(0, -4)],
    ['runs', 'statement', runId],
    ['runs', 'events', runId],
    ['runs', 'events'],
    ['threads', 'list'],
    ['threads', 'show', threadId],
    ['inbox', 'list', threadId],
    ['inbox', 'list', threadId, '--state', 'consumed'],
    ['inbox', 'dead', 'list'],
    ['approvals', 'list'],
    ['approvals', 'show', first.id],
    ['doubts', 'list'],
    ['policy', 'check'],
    ['policy', 'explain', '--agent', 'clerk', '--tool', 'note', '--input', '{"entry":"a"}'],
    ['policy', 'rules'],
    ['token', 'list'],
    ['status'],
    // And what goes wrong goes wrong in the same words.
    ['runs', 'show', 'run_nothing'],
    ['threads', 'show', 'nobody'],
    ['approvals', 'approve', 'apr_nothing'],
    ['inbox', 'show', 'msg_nothing'],
    ['inbox', 'ack', 'dlv_nothing'],
    ['policy', 'explain', '--agent', 'nobody', '--tool', 'note'],
    ['send', threadId, ' '],
    ...SCHEDULE_MISTAKES,
  ]
  for (const args of looks) await same('--json', ...args)
  for (const args of looks) await same(...args)
})

test('from elsewhere one decides, cancels, stops and drains, and waits for what becomes of it', async () => {
  const { here, there, local, url } = await both()
  const waiting = await there('send', '--agent', 'clerk', '--wait', 'go')
  expect([waiting.code, waiting.stderr]).toEqual([5, expect.stringContaining('waits for a yes or a no')])
  const [a, b] = JSON.parse((await there('--json', 'approvals', 'list')).stdout) as [Item, Item]
  expect((await there('approvals', 'approve', a.id, '--digest', 'other')).code).toBe(4)
  expect((await there('approvals', 'approve', a.id)).stdout).toBe(`${a.id} approved\n`)
  expect((await there('approvals', 'approve', a.id)).code).toBe(4)
  expect((await there('approvals', 'always', b.id, '--yes')).code).toBe(0)
  const [{ id: run }] = JSON.parse((await there('--json', 'runs', 'list')).stdout) as [Item]
  await here.reaches(run, 'succeeded')
  expect((await there('runs', 'cancel', run)).code).toBe(4)
  const held = JSON.parse((await there('--json', 'send', '--agent', 'clerk', 'again')).stdout) as Record<string, string>
  await here.reaches(held['runId']!, 'parked')
  const cancelled = await there('--json', 'runs', 'cancel', held['runId']!, '--reason', 'not now')
  expect(JSON.parse(cancelled.stdout)).toMatchObject({
    state: 'cancelled',
    cancel: { by: 'the owner', reason: 'not now' },
  })
  expect((await there('threads', 'stop', held['threadId']!)).stdout).toContain('stopped')
  expect((await there('threads', 'resume', held['threadId']!)).stdout).toContain('open')
  expect((await there('threads', 'remove', held['threadId']!)).code).toBe(0)
  const command = JSON.parse((await local('--json', 'run', '--', 'true')).stdout) as { threadId: string }
  await there('send', command.threadId, 'for the drawer')
  const drained = JSON.parse((await there('--json', 'inbox', 'drain', command.threadId)).stdout) as {
    messages: object[]
  }
  expect(drained).toMatchObject({ messages: [{ body: { text: 'for the drawer' } }], remaining: 0 })
  expect((await there('inbox', 'list', command.threadId)).stdout).toBe('no messages\n')
  await until('the record has it', async () => {
    const said = (await local('--json', 'runs', 'events')).stdout
    const events = JSON.parse(said) as { type: string; data: { call?: string; via?: string } }[]
    const acts = events.filter(({ type, data }) => type === 'operator.acted' && data.via === 'HTTP')
    const calls = acts.map(({ data }) => data.call)
    return ['approvals.decide', 'approvals.always', 'runs.cancel', 'threads.stop', 'threads.remove', 'inbox.ack'].every(
      (call) => calls.includes(call),
    )
      ? true
      : undefined
  })
  // What is about this machine is not done elsewhere behind one's back, and a token is shown to its own daemon only.
  expect((await there('run', '--', 'true')).stderr).toContain('usage/only-here')
  const home = { HOLDFAST_HOME: new Installation().home }
  expect((await typed(['runs', 'list'], { ...home, HOLDFAST_URL: url })).stderr).toContain('auth/no-token')
  expect((await typed(['runs', 'list'], { HOLDFAST_HOME: here.home, HOLDFAST_URL: url })).code).toBe(0)
  const nobody = { ...home, HOLDFAST_URL: 'http://127.0.0.1:1', HOLDFAST_TOKEN: 'x' }
  expect((await typed(['runs', 'list'], nobody)).stderr).toContain('daemon/no-answer')
})
