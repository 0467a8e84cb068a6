import { describe, expect, test } from 'vitest'

import { findAction } from '../../src/actions/action.ts'
import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval, expireApprovals } from '../../src/actions/decide.ts'
import { answersOf, editApproval } from '../../src/actions/edit.ts'
import type { Edit } from '../../src/actions/edit.ts'
import { newActionId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { checkEdit } from '../../src/loop/reply.ts'
import type { Tool } from '../../src/loop/ports.ts'
import { versionOf } from '../../src/loop/version.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { results } from '../support/stage.ts'
import { reread } from '../support/world.ts'
import { answer, waiting } from './waiting.ts'

function edit(tool: Tool, input: unknown, digest: string, more: Partial<Edit> = {}): Edit {
  const checked = checkEdit(tool, input)
  if ('wrong' in checked) throw new Error(checked.wrong)
  const action = { id: newActionId(random), mark: random.hex(15), ...checked }
  return { by: 'ann', via: 'test', digest, action, ...more }
}

describe.each(engines)('a call that a person changes, on $name', (engine) => {
  test('is asked for afresh, bound to its own bytes, and happens as it was changed [approvals/bound]', async () => {
    const { stage, store, runId, approvals } = await waiting(engine, ['a', 'b'])
    const [a, b] = approvals
    const changed = edit(stage.tool('append'), { entry: 'A!' }, a!.digest, { note: 'louder' })
    const edited = await store.apply(editApproval, a!.id, changed)
    if (edited.kind !== 'edited') throw new Error(edited.kind)
    expect(edited.original).toMatchObject({ state: 'skipped', replacedBy: changed.action.id })
    expect(edited.action).toMatchObject({ state: 'waiting', callId: edited.original.callId, input: { entry: 'A!' } })
    expect(edited.approval.digest).not.toBe(a!.digest)
    expect(JSON.parse(edited.approval.shown)).toMatchObject({ tool: 'append', input: { entry: 'A!' } })
    expect(await reread(store, runId)).toMatchObject({ state: 'parked' })
    await assertInvariants(store)

    // A yes for what it was is no yes for what it is.
    expect(await store.apply(decideApproval, a!.id, answer('approve', a!.digest))).toMatchObject({ kind: 'too-late' })
    expect(await store.apply(decideApproval, edited.approval.id, answer('approve', a!.digest))).toMatchObject({
      kind: 'changed',
    })
    await store.apply(decideApproval, edited.approval.id, answer('approve', edited.approval.digest))
    await store.apply(decideApproval, b!.id, answer('approve', b!.digest))
    await stage.finished(await stage.claim())
    expect(stage.effects.toSorted()).toEqual(['A!', 'b'])
    // One answer for each call, in the order of the calls, and the model is told what was done instead.
    expect(results(stage.asked.at(-1)!)).toEqual([
      '(a person changed this call before it was done; its arguments were: {"entry":"A!"})\ndid A!',
      'did b',
    ])
    await assertInvariants(store)
  })

  test('a later run is shown the same answers, one for each call', async () => {
    const { stage, store, approvals } = await waiting(engine, ['a', 'b'])
    const [a, b] = approvals
    const edited = await store.apply(editApproval, a!.id, edit(stage.tool('append'), { entry: 'c' }, a!.digest))
    if (edited.kind !== 'edited') throw new Error(edited.kind)
    await store.apply(decideApproval, edited.approval.id, answer('deny', edited.approval.digest))
    await store.apply(decideApproval, b!.id, answer('skip', b!.digest))
    await stage.finished(await stage.claim())
    stage.replies = [...stage.replies, { text: 'Yes.' }]
    await stage.send('and then?')
    await stage.finished(await stage.claim())
    const [first, second] = stage.asked.slice(-2)
    expect(results(second!)).toEqual(results(first!))
    expect(results(second!)).toEqual([
      expect.stringContaining('"entry":"c"})\ndenied: a person said no'),
      'skipped: a person said: not this one',
    ])
    expect(stage.effects).toEqual([])
  })

  test('twice: the last word counts', async () => {
    const { stage, store, approvals } = await waiting(engine, ['a'])
    let [current] = approvals
    for (const entry of ['b', 'c']) {
      const edited = await store.apply(
        editApproval,
        current!.id,
        edit(stage.tool('append'), { entry }, current!.digest),
      )
      if (edited.kind !== 'edited') throw new Error(edited.kind)
      current = edited.approval
    }
    expect(await store.read(pendingApprovals, 10)).toHaveLength(1)
    await store.apply(decideApproval, current!.id, answer('approve', current!.digest))
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['c'])
    expect(results(stage.asked.at(-1)!)).toHaveLength(1)
  })

  test('what was denied before in this run is asked for all the same: a person wants it', async () => {
    const { stage, store, approvals } = await waiting(engine, ['a', 'b'])
    const [a, b] = approvals
    await store.apply(decideApproval, a!.id, answer('deny', a!.digest))
    const edited = await store.apply(editApproval, b!.id, edit(stage.tool('append'), { entry: 'a' }, b!.digest))
    expect(edited).toMatchObject({ kind: 'edited', action: { state: 'waiting' } })
  })

  test('too late, of other bytes, or of nothing: refused, and nothing is changed', async () => {
    const { stage, store, clock, runId, approvals } = await waiting(engine, ['a', 'b', 'c'])
    const [a, b, c] = approvals
    const changed = (digest: string) => edit(stage.tool('append'), { entry: 'x' }, digest)
    expect(await store.apply(editApproval, a!.id, changed('of something else'))).toMatchObject({ kind: 'changed' })
    expect(await store.apply(editApproval, 'apr_none', changed(''))).toEqual({ kind: 'unknown' })
    await store.apply(decideApproval, a!.id, answer('approve', a!.digest))
    expect(await store.apply(editApproval, a!.id, changed(a!.digest))).toMatchObject({ kind: 'too-late' })
    clock.step(LIMITS.approvalMs)
    expect(await store.apply(editApproval, b!.id, changed(b!.digest))).toMatchObject({ kind: 'too-late' })
    await store.apply(expireApprovals, 10)
    await store.apply(cancelRun, runId, { by: 'ann' })
    expect(await store.apply(editApproval, c!.id, changed(c!.digest))).toMatchObject({ kind: 'too-late' })
    expect(await stage.actionsOf(runId)).toHaveLength(3)
    await assertInvariants(store)
  })

  test('at the moment of parking: the run waits for what it was changed to', async () => {
    const { stage, store, approvals, runId } = await waiting(engine, ['a', 'b'])
    const [a, b] = approvals
    // The first is decided, so the run goes on; while it does, the second is changed.
    stage.perform = async (entry) => {
      if (entry === 'a') await store.apply(editApproval, b!.id, edit(stage.tool('append'), { entry: 'B' }, b!.digest))
      return { kind: 'done', result: `did ${entry}` }
    }
    await store.apply(decideApproval, a!.id, answer('approve', a!.digest))
    expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
    expect(await reread(store, runId)).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
    const [now] = await store.read(pendingApprovals, 10)
    await store.apply(decideApproval, now!.id, answer('approve', now!.digest))
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['a', 'B'])
    expect(await store.read(findAction, b!.actionId)).toMatchObject({ state: 'skipped' })
  })
})

describe('checking a changed call', () => {
  const tool = {
    name: 'append',
    description: '',
    inputSchema: {},
    effect: 'write',
    repeat: 'once',
    idempotent: false,
    identity: (input: unknown) => input,
    validate: (input: unknown) =>
      typeof (input as { entry?: unknown }).entry === 'string' ? { input } : { error: 'entry: is required' },
  } as unknown as Tool

  test('is done by the tool itself', () => {
    expect(checkEdit(tool, { entry: 1 })).toEqual({ wrong: 'entry: is required' })
    expect(checkEdit(tool, { entry: 'a' })).toMatchObject({ input: { entry: 'a' }, version: versionOf(tool) })
    expect(checkEdit(tool, { entry: 'x'.repeat(LIMITS.argumentCharacters) })).toMatchObject({
      wrong: expect.stringContaining('characters') as string,
    })
  })

  test('calls without a change are answered as they are', () => {
    expect(answersOf([])).toEqual([])
  })
})
