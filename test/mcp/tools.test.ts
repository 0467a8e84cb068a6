import { expect, test } from 'vitest'

import { askedMatters } from '../../src/actions/desk.ts'
import { listRuns } from '../../src/runs/run.ts'
import { livingOf, jobsOf } from '../../src/schedule/job.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { BOSS, SELF, makePlace } from './support.ts'

test('an agent sends, delegates, reports, schedules and manages jobs, each once for one key', async () => {
  const { installation, store, connect } = await makePlace()
  const { call } = await connect()
  expect(await call('who_am_i')).toMatchObject({
    value: { thread: SELF, agent: 'claude', parent: BOSS, agents: ['helper'] },
  })

  const letter = { to: 'parent', text: 'half of it is done', key: 'k1' }
  const sent = await call('send_message', letter)
  expect(await call('send_message', letter)).toEqual(sent)
  expect((await call('send_message', { ...letter, text: 'something else' })).error).toContain('another text')
  const report = { outcome: 'done', summary: 'all of it is done' }
  expect(await call('report_completion', report)).toEqual(await call('report_completion', report))
  expect((await call('report_completion', { ...report, summary: 'no' })).error).toContain('another text')
  expect(await store.read(messagesOf, BOSS)).toMatchObject([
    { fromThread: SELF, kind: 'note', body: { text: 'half of it is done' } },
    { fromThread: SELF, kind: 'note', body: { text: expect.stringContaining('all of it is done') as string } },
  ])

  const task = { agent: 'helper', task: 'help', key: 'k1' }
  const started = await call('delegate', task)
  expect(started).toMatchObject({ value: { agent: 'helper', status: 'started' } })
  expect(await call('delegate', task)).toEqual(started)
  const children = (await store.read(listRuns, { limit: 10 })).filter(({ agent }) => agent === 'helper')
  expect(children).toMatchObject([{ id: started.value?.['run'], parentThreadId: SELF, state: 'queued' }])

  const later = { delay_seconds: 600, prompt: 'look again', key: 'k1' }
  const followup = await call('schedule_followup', later)
  expect(await call('schedule_followup', later)).toEqual(followup)
  expect(await store.read(livingOf, SELF, 'followup', 10)).toMatchObject([{ id: followup.value?.['id'] }])
  const job = { action: 'create', name: 'sweep', every: '1h', prompt: 'sweep', key: 'k1' }
  expect(await call('manage_jobs', job)).toEqual(await call('manage_jobs', job))
  expect(await call('list_jobs')).toMatchObject({ value: [{ name: 'sweep', state: 'active' }] })
  expect(await store.read(jobsOf, SELF, 10)).toHaveLength(1)
  expect((await call('cancel_followup', { id: followup.value?.['id'] })).error).toBeUndefined()
  expect(await call('list_followups')).toEqual({ value: [] })

  await installation.daemon(1)
  await until('the child has ended', async () => {
    const { value } = await call('wait_for_message', { wait_seconds: 2 })
    return JSON.stringify(value).includes('helped') ? true : undefined
  })
  await assertInvariants(store)
})

test.for(['sqlite', 'postgres'] as const)(
  'two servers that are asked the same at once, and one that is killed in the middle, do it once [%s]',
  async (engine) => {
    const { store, connect } = await makePlace(engine)
    const [one, other, killed] = await Promise.all([connect(), connect(), connect()])
    const requests = [
      ['send_message', { to: 'parent', text: 'hello', key: 'k' }],
      ['delegate', { agent: 'helper', task: 'help', key: 'k' }],
      ['schedule_followup', { delay_seconds: 600, prompt: 'look again', key: 'k' }],
      ['manage_jobs', { action: 'create', name: 'sweep', every: '1h', prompt: 'sweep', key: 'k' }],
      ['ask_approval', { what: 'May I?', key: 'k', wait_seconds: 0 }],
    ] as const
    const cut = requests.map(([name, args]) => killed.call(name, args).catch(() => 'cut'))
    process.kill(killed.pid, 'SIGKILL')
    for (const [name, args] of requests) {
      const [first, second] = await Promise.all([one.call(name, args), other.call(name, args)])
      expect(first.error, name).toBeUndefined()
      expect(second, name).toEqual(first)
    }
    await Promise.all(cut)
    expect(await store.read(messagesOf, BOSS)).toHaveLength(1)
    const runs = await store.read(listRuns, { limit: 10 })
    expect(runs.filter(({ agent }) => agent === 'helper')).toHaveLength(1)
    expect(await store.read(livingOf, SELF, 'followup', 10)).toHaveLength(1)
    expect(await store.read(livingOf, SELF, 'job', 10)).toHaveLength(1)
    expect(await store.read(askedMatters, 10)).toHaveLength(1)
    await assertInvariants(store)
  },
)

test('what a run has started is known by it: it delegates, asks a person, and has nobody to report to', async () => {
  const { installation, store, connect } = await makePlace()
  await installation.daemon(2)
  const gate = installation.gate()
  const id = await installation.detach(...installation.append('ended', gate.path))
  const { threadId } = await installation.reaches(id, 'running')
  const { call } = await connect({ env: { HOLDFAST_THREAD: threadId, HOLDFAST_RUN: id } })
  expect(await call('who_am_i')).toMatchObject({ value: { thread: threadId, run: id, agent: 'command' } })
  const started = await call('delegate', { agent: 'helper', task: 'help' })
  expect(started.error).toBeUndefined()
  expect((await call('report_completion', { outcome: 'done', summary: 'x' })).error).toContain('started by nobody')
  const waiting = call('ask_approval', { what: 'May I?' })
  const asked = await until('a person is asked', async () => (await store.read(askedMatters, 5))[0])
  await installation.run(['approvals', 'approve', asked.approval.id])
  expect(await waiting).toMatchObject({ value: { decision: 'approved' } })
  expect(await call('wait_for_message')).toMatchObject({ value: { messages: [{ kind: 'completion' }] } })
  gate.open()
  await installation.reaches(id, 'succeeded')
  await assertInvariants(store)
})
