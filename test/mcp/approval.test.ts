import { expect, test } from 'vitest'

import { actionsOfRun } from '../../src/actions/action.ts'
import { findApproval } from '../../src/actions/approval.ts'
import { askedMatters } from '../../src/actions/desk.ts'
import { turnStopped } from '../../src/sessions/events.ts'
import { findSession } from '../../src/sessions/session.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { HEARD, makePlace } from './support.ts'
import type { Place } from './support.ts'

async function theQuestion({ store }: Place) {
  return until('a person is asked', async () => (await store.read(askedMatters, 5))[0])
}

test('a person says yes to exactly what was asked, for one use; a killed server and a lost answer change nothing [approvals/bound]', async () => {
  const place = await makePlace()
  const { installation, store, connect } = place
  const killed = await connect()
  const question = { what: 'Pay the rent?', details: { amount: 100 }, key: 'rent', wait_seconds: 600 }
  const { requestState } = await killed.round('ask_approval', question)
  expect(requestState).toBeTypeOf('string')
  process.kill(killed.pid, 'SIGKILL')
  const { approval, run } = await theQuestion(place)
  expect(JSON.parse(approval.shown)).toMatchObject({
    tool: 'ask_approval',
    input: { what: 'Pay the rent?', details: { amount: 100 } },
  })
  expect(await installation.run(['approvals', 'approve', approval.id])).toMatchObject({ code: 0 })

  const { round, call } = await connect()
  const yes = { value: { decision: 'approved', by: expect.stringContaining('command line') as string } }
  expect(await round('ask_approval', question, requestState)).toEqual(yes)
  expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'consumed' })
  expect(await round('ask_approval', question, requestState)).toEqual(yes)
  expect(await call('ask_approval', question)).toEqual(yes)
  expect(await store.read(actionsOfRun, run.id)).toMatchObject([{ state: 'done', tries: 1 }])
  // The yes has been used: asked under another name, or about something else, it is another question.
  for (const other of [
    { ...question, key: 'again' },
    { ...question, details: { amount: 101 } },
  ])
    expect(await call('ask_approval', { ...other, wait_seconds: 0 })).toMatchObject({ value: { decision: 'not yet' } })
  await assertInvariants(store)
})

test('a wait that the library carries on by itself ends with the no of a person, and the same question is not asked again', async () => {
  const place = await makePlace()
  const { installation, store, connect } = place
  const { call } = await connect()
  const question = { what: 'Drop the table?' }
  const waiting = call('ask_approval', question)
  const { approval } = await theQuestion(place)
  await installation.run(['approvals', 'deny', approval.id, '--note', 'never'])
  const no = { value: { decision: 'refused', why: expect.stringContaining('never') as string } }
  expect(await waiting).toEqual(no)
  expect(await call('ask_approval', question)).toEqual(no)
  expect(await store.read(askedMatters, 5)).toEqual([])
  await assertInvariants(store)
})

test('a question is open until its turn has ended', async () => {
  const place = await makePlace()
  const { store, connect } = place
  const { call } = await connect()
  expect(await call('ask_approval', { what: 'Now?', wait_seconds: 0 })).toMatchObject({
    value: { decision: 'not yet' },
  })
  const { approval } = await theQuestion(place)
  const end = { turn: 'p1', ordinal: 1, isActive: false, isPaused: false, deliveryId: 'd1' }
  await store.apply(turnStopped, HEARD, end)
  expect((await store.read(findSession, 'claude:s1'))?.runId).toBeNull()
  expect(await store.read(findApproval, approval.id)).toMatchObject({ state: 'withdrawn' })
  expect((await call('ask_approval', { what: 'Now?', wait_seconds: 0 })).error).toContain('no turn')
  await assertInvariants(store)
})
