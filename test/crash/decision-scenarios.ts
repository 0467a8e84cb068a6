import { approveAlways } from '../../src/actions/always.ts'
import { parkForDecision } from '../../src/actions/await.ts'
import { approvalOf } from '../../src/actions/approval.ts'
import { decideApproval, expireApprovals } from '../../src/actions/decide.ts'
import type { Answer } from '../../src/actions/decide.ts'
import { resolveDoubt } from '../../src/actions/doubt.ts'
import type { Resolution } from '../../src/actions/doubt.ts'
import { settleAction, startAction } from '../../src/actions/perform.ts'
import { addRule, removeRule } from '../../src/actions/rule.ts'
import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'
import { CURRENT, aTurn, started, talking } from './agent-scenarios.ts'
import { byTester, newAttempt, scenario } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

/** A run that asked for these writes, with nobody's answer yet. */
async function asked(world: World, entries: readonly string[] = ['a', 'b']) {
  const { ref, messageId } = await talking(world)
  const turn = aTurn(messageId, entries)
  const verdict = { kind: 'ask', by: 'no rule', via: 'default' } as const
  const actions = turn.actions.map((action) => ({ ...action, verdict }))
  const recorded = await world.store.apply(recordTurn, ref, { ...turn, actions })
  if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
  return { ref, actions: recorded.actions, ids: recorded.actions.map(({ id }) => id) }
}

/** The same, parked. */
export async function waiting(world: World) {
  const run = await asked(world)
  await world.store.apply(parkForDecision, run.ref, run.actions)
  return run
}

const answer = (kind: Answer['kind'], digest: string | null): Answer => ({
  kind,
  digest: digest ?? '',
  by: 'ann',
  via: 'test',
})

const rule = { id: 'rule_1', rule: { tool: 'append', decision: 'allow' }, by: 'ann' } as const

async function doubtful(world: World) {
  const { ref, action } = await started(world)
  await world.store.apply(settleAction, action, { state: 'in_doubt', error: 'cut off', by: 'nobody' })
  return { ref, action }
}

const resolving = (kind: Resolution['kind']) =>
  scenario({ resolveDoubt }, `${kind}, of a run that waits for it`, async (world) => {
    const { ref, action } = await doubtful(world)
    await world.store.apply(parkForDecision, ref, [action])
    return [action.id, { kind, by: 'ann', why: 'looked' }]
  })

/** Of what needs a person: requests, answers, rules, doubts. */
export const DECISION_SCENARIOS: readonly Scenario[] = [
  scenario({ parkForDecision }, 'two actions that wait', async (world) => {
    const { ref, actions } = await asked(world)
    return [ref, actions]
  }),
  ...(['approve', 'skip'] as const).map((kind) =>
    scenario({ decideApproval }, `${kind}, of a run that waits`, async (world) => {
      const { actions } = await waiting(world)
      return [approvalOf(actions[0]!.id), answer(kind, actions[0]!.digest)]
    }),
  ),
  scenario({ decideApproval }, 'of a run that was cancelled', async (world) => {
    const { ref, actions } = await waiting(world)
    await world.store.apply(cancelRun, ref.runId, byTester)
    return [approvalOf(actions[0]!.id), answer('approve', actions[0]!.digest)]
  }),
  scenario({ approveAlways }, 'of a run that waits', async (world) => {
    const { actions } = await waiting(world)
    return [approvalOf(actions[0]!.id), answer('approve', actions[0]!.digest), rule]
  }),
  scenario({ expireApprovals }, 'two that nobody answered', async (world) => {
    await waiting(world)
    world.clock.step(LIMITS.approvalMs)
    return [10]
  }),
  scenario({ startAction }, 'an action that a person approved', async (world) => {
    const { actions } = await waiting(world)
    await world.store.apply(decideApproval, approvalOf(actions[0]!.id), answer('approve', actions[0]!.digest))
    const claimed = await world.store.apply(claimRun, {
      workerId: await addWorker(world.store),
      leaseMs: LEASE_MS,
      limits: {},
      attempt: newAttempt(),
      agents: ['clerk'],
    })
    const ref = { id: claimed!.attempt.id, runId: claimed!.run.id, fence: claimed!.run.fence }
    return [ref, actions[0]!.id, CURRENT]
  }),
  scenario({ cancelRun }, 'a run that waits for a person', async (world) => [
    (await waiting(world)).ref.runId,
    byTester,
  ]),
  scenario({ addRule }, 'a rule that a person made', async () => [rule]),
  scenario({ removeRule }, 'a rule that is in force', async ({ store }) => {
    await store.apply(addRule, rule)
    return ['rule_1', 'ann']
  }),
  resolving('happened'),
  resolving('did-not-happen'),
  resolving('run-again'),
  resolving('give-up'),
  scenario({ resolveDoubt }, 'run-again, begun on a machine that is said to be dead', async (world) => {
    const { ref, action } = await doubtful(world)
    const held = (await world.store.read(heldAttempts)).find(({ id }) => id === ref.id)!
    const taker = { workerId: await addWorker(world.store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const taken = (await world.store.apply(takeOverRun, held, 'owner-dead', taker))!
    const now = { id: taker.attemptId, runId: ref.runId, fence: taken.run.fence }
    await world.store.apply(parkForDecision, now, [action])
    return [action.id, { kind: 'run-again', by: 'ann', deadHost: held.identity.host } as const]
  }),
]
