import { expect, test } from 'vitest'

import type { viewAsked } from '../../src/actions/desk.ts'
import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'

type Asked = ReturnType<typeof viewAsked> & { readonly replaces?: string }

const ledger = (place: AgentInstallation) => ({
  effect: 'write',
  description: 'Append one entry',
  input: {
    type: 'object',
    properties: { entry: { type: 'string' } },
    required: ['entry'],
    additionalProperties: false,
  },
  identity: ['entry'],
  once: { per: 'agent', within: '24h' },
  command: ['sh', '-c', `cat >> ${place.ledger}; echo >> ${place.ledger}`],
})

function installed(policy: readonly unknown[]): AgentInstallation {
  const place = new AgentInstallation({ agents: {} })
  const replies = [{ toolCalls: [{ tool: 'note', input: { entry: 'a' } }] }, { text: 'Done.' }]
  place.configure({ agents: { clerk: { replies, tools: ['note'] } }, tools: { note: ledger(place) }, policy })
  return place
}

const asked = (place: AgentInstallation) =>
  until('somebody is asked', async () => {
    const found = await place.json<Asked[]>(['approvals', 'list'])
    return found.length === 0 ? undefined : found
  })

test('approvals edit: what is wrong is refused by the tool itself; what is right is asked for, and done as it was changed', async () => {
  const place = installed([])
  const daemon = await place.daemon()
  const { runId } = await place.send('clerk')
  const [first] = await asked(place)
  expect(await place.json<object>(['approvals', 'show', first!.id])).toMatchObject({ editable: true })
  const edit = (...args: readonly string[]) => place.run(['approvals', 'edit', first!.id, ...args])
  expect(await edit('--input', '{"entry": 7}')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('entry') as string,
  })
  expect(await edit('--input', '{')).toMatchObject({ code: 2 })
  expect(await place.run(['approvals', 'edit', first!.id, '--input', '{}'], { HOLDFAST_RUN: runId })).toMatchObject({
    stderr: expect.stringContaining('decisions/inside-run') as string,
  })
  const changed = await place.json<Asked>([
    'approvals',
    'edit',
    first!.id,
    '--input',
    '{"entry":"b"}',
    '--note',
    'better',
  ])
  expect(changed).toMatchObject({ state: 'pending', input: { entry: 'b' }, replaces: first!.id })
  expect(place.effects()).toEqual([])
  await place.run(['approvals', 'approve', changed.id])
  expect(await place.ended(runId)).toMatchObject({ state: 'succeeded' })
  expect(place.effects()).toEqual(['{"entry":"b"}'])
  daemon.kill('SIGTERM')
  await daemon.ended
})

test('once a day, and "do it again": only when a person said so, and asked for afresh', async () => {
  const place = installed([{ decision: 'allow' }])
  const daemon = await place.daemon()
  const first = await place.ended((await place.send('clerk')).runId)
  const second = await place.ended((await place.send('clerk')).runId)
  expect(second.actions).toMatchObject([{ state: 'done', repeatOf: first.actions[0]!.id }])
  expect(place.effects()).toHaveLength(1)
  expect(await place.run(['actions', 'again', second.actions[0]!.id, '--why', 'it got lost'])).toMatchObject({
    code: 0,
  })
  const { runId } = await place.send('clerk')
  const [again] = await asked(place)
  expect(again!.askedBy).toContain('it got lost')
  expect(place.effects()).toHaveLength(1)
  await place.run(['approvals', 'approve', again!.id])
  await place.ended(runId)
  expect(place.effects()).toHaveLength(2)
  daemon.kill('SIGTERM')
  await daemon.ended
})
