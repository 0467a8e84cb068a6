import { approvalOf } from '../../src/actions/approval.ts'
import { parkForDecision } from '../../src/actions/await.ts'
import { doubtAgain, resolveDoubt } from '../../src/actions/doubt.ts'
import { editApproval } from '../../src/actions/edit.ts'
import type { Edit } from '../../src/actions/edit.ts'
import { settleAction, startAction } from '../../src/actions/perform.ts'
import { forgetMarks, releaseAction } from '../../src/actions/window.ts'
import { newActionId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { dueNotices, forgetNotices, queueNotices, settleNotice, tryNotice } from '../../src/notify/notice.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'
import { aTurn, CURRENT, started, talking } from './agent-scenarios.ts'
import { waiting } from './decision-scenarios.ts'
import { byTester, newAttempt, scenario } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

/** Calls that people change, allow once more, and what they are told of; and calls that are one across runs. */

const edit = (digest: string | null): Edit => ({
  by: 'ann',
  via: 'test',
  digest: digest ?? '',
  action: {
    id: newActionId(random),
    mark: random.hex(15),
    input: { entry: 'x' },
    signature: 'x',
    version: '',
    effect: 'write',
  },
})

const ONCE = { ...CURRENT, once: { per: 'agent', withinMs: 60_000 } } as const

/** Of another thread of the same agent: the same call. */
async function another({ store }: World) {
  const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: 'another' as ThreadId }
  const { message } = await store.apply(sendMessage, { ...ids, agent: 'clerk', text: 'hello', key: 'another' })
  const claimed = await store.apply(claimRun, {
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    limits: {},
    attempt: newAttempt(),
    agents: ['clerk'],
  })
  const ref = { id: claimed!.attempt.id, runId: claimed!.run.id, fence: claimed!.run.fence }
  const recorded = await store.apply(recordTurn, ref, aTurn(message.id, ['a']))
  if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
  return { ref, action: recorded.actions[0]! }
}

/** The first of two runs that make the same call. */
async function first(world: World) {
  const { ref, messageId } = await talking(world)
  const recorded = await world.store.apply(recordTurn, ref, aTurn(messageId, ['a']))
  if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
  return { ref, action: recorded.actions[0]! }
}

async function done(world: World) {
  const { ref, action } = await first(world)
  const start = await world.store.apply(startAction, ref, action.id, ONCE)
  if (start.kind !== 'started') throw new Error(start.kind)
  return world.store.apply(settleAction, start.action, { state: 'done', result: 1, by: 'its tool' })
}

async function noticed(world: World, tries: number) {
  await waiting(world)
  await world.store.apply(queueNotices, ['one'])
  let [notice] = await world.store.read(dueNotices, 1)
  for (let i = 0; i < tries; i++) {
    notice = await world.store.apply(tryNotice, notice!)
    world.clock.step(LIMITS.noticeFirstMs * 2 ** i)
  }
  return notice!
}

export const NOTICE_SCENARIOS: readonly Scenario[] = [
  scenario({ editApproval }, 'a call of a run that waits', async (world) => {
    const { actions } = await waiting(world)
    return [approvalOf(actions[0]!.id), edit(actions[0]!.digest)]
  }),
  scenario({ editApproval }, 'of a run that was cancelled', async (world) => {
    const { ref, actions } = await waiting(world)
    await world.store.apply(cancelRun, ref.runId, byTester)
    return [approvalOf(actions[0]!.id), edit(actions[0]!.digest)]
  }),
  scenario({ startAction }, 'the first of its agent', async (world) => {
    const { ref, action } = await first(world)
    return [ref, action.id, ONCE]
  }),
  scenario({ startAction }, 'what another run of its agent has done', async (world) => {
    await done(world)
    const { ref, action } = await another(world)
    return [ref, action.id, ONCE]
  }),
  scenario({ startAction }, 'what another run has done, and may be done once more', async (world) => {
    const { id } = await done(world)
    await world.store.apply(releaseAction, id, { by: 'ann' })
    const { ref, action } = await another(world)
    return [ref, action.id, ONCE]
  }),
  scenario({ releaseAction }, 'what was done', async (world) => [(await done(world)).id, { by: 'ann', why: 'lost' }]),
  scenario({ releaseAction }, 'what is under way', async (world) => [(await started(world)).action.id, { by: 'ann' }]),
  scenario({ doubtAgain }, 'what was to be done again', async (world) => {
    const { action } = await started(world)
    await world.store.apply(settleAction, action, { state: 'in_doubt', error: 'cut off', by: 'nobody' })
    const resolved = await world.store.apply(resolveDoubt, action.id, { kind: 'run-again', by: 'ann' })
    if (resolved.kind !== 'resolved') throw new Error(resolved.kind)
    return [resolved.action, 'it may still happen']
  }),
  scenario({ settleAction }, 'by who had begun it, although a person is asked by now', async (world) => {
    const { ref, action } = await started(world)
    await world.store.apply(settleAction, action, { state: 'in_doubt', error: 'cut', by: 'nobody' })
    await world.store.apply(parkForDecision, ref, [action])
    return [action, { state: 'done', result: 1, by: 'its tool' } as const]
  }),
  scenario({ queueNotices }, 'two approvals for two channels', async (world) => {
    await waiting(world)
    return [['one', 'two']]
  }),
  scenario({ tryNotice }, 'one that is due', async (world) => [await noticed(world, 0)]),
  scenario({ settleNotice }, 'sent', async (world) => [await noticed(world, 1)]),
  scenario({ settleNotice }, 'not sent', async (world) => [await noticed(world, 1), 'status 500']),
  scenario({ settleNotice }, 'not sent for the last time', async (world) => [
    await noticed(world, LIMITS.noticeTries),
    'status 500',
  ]),
  scenario({ forgetNotices }, 'one that was sent long ago, one that was not', async (world) => {
    await world.store.apply(settleNotice, await noticed(world, 1))
    world.clock.step(LIMITS.messagesKeptMs)
    return [10]
  }),
  scenario({ forgetMarks }, 'of a window that ended long ago', async (world) => {
    await done(world)
    world.clock.step(ONCE.once.withinMs + LIMITS.messagesKeptMs)
    return [10]
  }),
]
