import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import { submitRun } from '../../src/runs/submit.ts'
import type { Store } from '../../src/store/store.ts'
import { askDiscard, askKeep, askLand, askRetry } from '../../src/workspace/ask.ts'
import {
  activateWorkspace,
  checkpointWorkspace,
  openWorkspace,
  restoreWorkspace,
  resumeWorkspace,
} from '../../src/workspace/open.ts'
import { beginCheck, concludeCheck, prepareWorkspace, takeLanding } from '../../src/workspace/prepare.ts'
import {
  claimSettling,
  decideAgain,
  discardedWorkspace,
  holdRemains,
  keptWorkspace,
  landedWorkspace,
  observedWorkspace,
  postponeSettling,
  quarantineWorkspace,
  readyWorkspace,
  refuseWish,
  renewSettling,
  sweepWorkspace,
  takeLandingLate,
} from '../../src/workspace/settle.ts'
import type { Asker } from '../../src/workspace/ask.ts'
import {
  LANDS,
  TIP,
  candidate,
  claimed,
  failed,
  opening,
  passed,
  prepared,
  request,
  settlingAfter,
  workingUpTo,
} from '../support/workspaces.ts'
import { LEASE_MS, addWorker, someIdentity, submission } from '../support/world.ts'
import { byTester, scenario, succeeded, timedOut } from './scenario.ts'
import type { Scenario } from './scenario.ts'

const person: Asker = { by: 'a person' }

async function readyOne(store: Store) {
  const { runId, workerId } = await settlingAfter(store, succeeded)
  await store.apply(readyWorkspace, runId, workerId, 'the tree is dirty')
  return { runId, workerId: await addWorker(store) }
}

async function stuckOne(store: Store) {
  const { runId, workerId } = await settlingAfter(store, succeeded)
  await store.apply(postponeSettling, runId, workerId, 'its tree is not there', 1_000)
  return runId
}

async function discardedOne(store: Store) {
  const { runId, workerId } = await settlingAfter(store, timedOut)
  await store.apply(discardedWorkspace, runId, workerId, prepared, 60_000)
  return { runId, workerId: await addWorker(store) }
}

/** What a person asked for, in the hands of a settler. */
async function wanted(store: Store, wish: 'land' | 'keep') {
  const { runId, workerId } = await readyOne(store)
  if (wish === 'land') await store.apply(askLand, runId, person)
  else await store.apply(askKeep, runId, person, 'kept')
  await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })
  if (wish === 'land') await store.apply(takeLandingLate, runId, workerId)
  return { runId, workerId }
}

async function observing(store: Store) {
  const { run, ref } = await claimed(store, 'shadow')
  await store.apply(openWorkspace, ref, opening({ request: request('shadow') }))
  await store.apply(activateWorkspace, ref, TIP)
  await store.apply(finishRun, ref, succeeded)
  const workerId = await addWorker(store)
  await store.apply(claimSettling, run.id, { workerId, leaseMs: LEASE_MS })
  return { runId: run.id, workerId }
}

const seen = {
  lands: true,
  verdict: passed,
  reason: null,
  error: null,
  changed: ['a.txt'],
  changedCount: 1,
  linesAdded: 1,
  linesRemoved: 0,
  leftOut: [],
  leftOutCount: 0,
}

const working: readonly Scenario[] = [
  scenario({ submitRun }, 'a run with a workspace, for one machine', async () => {
    const asked = { kind: 'command' as const, argv: ['true'] as const, cwd: '/repo', workspace: request() }
    return [submission({ request: asked, host: someIdentity().host })]
  }),
  scenario({ openWorkspace }, 'of a run that was just claimed', async ({ store }) => [
    (await claimed(store)).ref,
    opening(),
  ]),
  scenario({ openWorkspace }, 'of a run that is being cancelled', async ({ store }) => {
    const { ref } = await claimed(store)
    await store.apply(cancelRun, ref.runId, byTester)
    return [ref, opening()]
  }),
  scenario({ activateWorkspace }, 'its tree is complete', async ({ store }) => [
    (await workingUpTo(store, 'opened')).ref,
  ]),
  scenario({ resumeWorkspace }, 'one that was checked and goes on', async ({ store }) => [
    (await workingUpTo(store, 'checked')).ref,
  ]),
  scenario({ restoreWorkspace }, 'its tree was gone', async ({ store }) => [(await workingUpTo(store, 'active')).ref]),
  scenario({ checkpointWorkspace }, 'its run is about to wait', async ({ store }) => [
    (await workingUpTo(store, 'active')).ref,
    LANDS,
  ]),
  scenario({ prepareWorkspace }, 'its work is a commit', async ({ store }) => [
    (await workingUpTo(store, 'active')).ref,
    prepared,
  ]),
  scenario({ prepareWorkspace }, 'by a worker that lost its claim', async ({ store }) => {
    const { ref, attempt } = await workingUpTo(store, 'active')
    const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    await store.apply(takeOverRun, { ...ref, mark: attempt.mark }, 'owner-dead', taker)
    return [ref, prepared]
  }),
  scenario({ takeLanding }, 'nobody lands there', async ({ store }) => [(await workingUpTo(store, 'prepared')).ref]),
  scenario({ takeLanding }, 'another one lands there', async ({ store }) => {
    await workingUpTo(store, 'locked')
    return [(await workingUpTo(store, 'prepared')).ref]
  }),
  scenario({ beginCheck }, 'with the lock', async ({ store }) => [(await workingUpTo(store, 'locked')).ref, candidate]),
  scenario({ concludeCheck }, 'it passed', async ({ store }) => [
    (await workingUpTo(store, 'checking')).ref,
    LANDS,
    passed,
  ]),
  scenario({ concludeCheck }, 'it failed', async ({ store }) => [
    (await workingUpTo(store, 'checking')).ref,
    LANDS,
    failed,
  ]),
]

const ending: readonly Scenario[] = [
  scenario({ finishRun }, 'success, with a workspace that was checked', async ({ store }) => [
    (await workingUpTo(store, 'checked')).ref,
    succeeded,
  ]),
  scenario(
    { finishRun },
    'success, with a workspace that was checked, after cancel was requested',
    async ({ store }) => {
      const { ref } = await workingUpTo(store, 'checked')
      await store.apply(cancelRun, ref.runId, byTester)
      return [ref, succeeded]
    },
  ),
  scenario({ finishRun }, 'failure, with a workspace that holds the lock', async ({ store }) => [
    (await workingUpTo(store, 'checking')).ref,
    timedOut,
  ]),
  scenario({ finishRun }, 'success, with a shadow', async ({ store }) => {
    const { ref } = await claimed(store, 'shadow')
    await store.apply(openWorkspace, ref, opening({ request: request('shadow') }))
    return [ref, succeeded]
  }),
]

const settling: readonly Scenario[] = [
  scenario({ claimSettling }, 'a decided one', async ({ store }) => {
    const { ref } = await workingUpTo(store, 'checked')
    await store.apply(finishRun, ref, succeeded)
    return [ref.runId, { workerId: await addWorker(store), leaseMs: LEASE_MS }]
  }),
  scenario({ claimSettling }, 'one whose settler is dead', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    return [runId, { workerId: await addWorker(store), leaseMs: LEASE_MS, dead: workerId }]
  }),
  scenario({ renewSettling }, 'by its settler', async ({ store, clock }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    clock.step(1_000)
    return [runId, { workerId, leaseMs: LEASE_MS }]
  }),
  scenario({ postponeSettling }, 'a full disk', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    return [runId, workerId, 'no space left', LIMITS.settleAgainMs]
  }),
  scenario({ landedWorkspace }, 'the branch has moved', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    return [runId, workerId, null, 0]
  }),
  scenario({ landedWorkspace }, 'the branch had it when a person gave it up', async ({ store }) => {
    const runId = await stuckOne(store)
    await store.apply(askDiscard, runId, person)
    const workerId = await addWorker(store)
    await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })
    return [runId, workerId, 'main had it already', 0]
  }),
  scenario({ readyWorkspace }, 'the tree is dirty', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    return [runId, workerId, 'the tree is dirty']
  }),
  scenario({ discardedWorkspace }, 'with work to keep for a while', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, timedOut)
    return [runId, workerId, prepared, 60_000]
  }),
  scenario({ discardedWorkspace }, 'a tree of it is not there', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, timedOut)
    return [runId, workerId, undefined, 0, { error: '/other is not there', why: 'nobody could look there' }]
  }),
  scenario({ quarantineWorkspace }, 'its repository is gone', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    return [runId, workerId, 'there is no repository any more']
  }),
  scenario({ observedWorkspace }, 'what a shadow saw', async ({ store }) => {
    const { runId, workerId } = await observing(store)
    return [runId, workerId, seen]
  }),
  scenario({ observedWorkspace }, 'what could not be seen', async ({ store }) => {
    const { runId, workerId } = await observing(store)
    return [runId, workerId, { ...seen, lands: false, error: 'the disk is full' }]
  }),
  scenario({ holdRemains }, 'its landing is begun in a tree that is not there', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    await store.apply(landedWorkspace, runId, workerId, null, 0)
    return [runId, LEASE_MS]
  }),
  scenario({ sweepWorkspace }, 'its time is over', async ({ store, clock }) => {
    const { runId } = await discardedOne(store)
    clock.step(60_001)
    return [runId]
  }),
]

const asking: readonly Scenario[] = [
  scenario({ askLand }, 'one that is ready', async ({ store }) => [(await readyOne(store)).runId, person]),
  scenario({ askLand }, 'one that was discarded', async ({ store }) => [(await discardedOne(store)).runId, person]),
  scenario({ askKeep }, 'one that was discarded', async ({ store }) => [
    (await discardedOne(store)).runId,
    person,
    'kept',
  ]),
  scenario({ askDiscard }, 'one that is ready', async ({ store }) => [(await readyOne(store)).runId, person]),
  scenario({ askDiscard }, 'one that is stuck in its landing', async ({ store }) => [await stuckOne(store), person]),
  scenario({ askRetry }, 'one in quarantine', async ({ store }) => {
    const { runId, workerId } = await settlingAfter(store, succeeded)
    await store.apply(quarantineWorkspace, runId, workerId, 'gone')
    return [runId, person]
  }),
  scenario({ takeLandingLate }, 'a person asked for it', async ({ store }) => {
    const { runId, workerId } = await readyOne(store)
    await store.apply(askLand, runId, person)
    await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })
    return [runId, workerId]
  }),
  scenario({ decideAgain }, 'checked once more', async ({ store }) => {
    const { runId, workerId } = await wanted(store, 'land')
    return [runId, workerId, { checkedOn: LANDS, sha: TIP, verdict: passed }]
  }),
  scenario({ keptWorkspace }, 'a branch has it', async ({ store }) => {
    const { runId, workerId } = await wanted(store, 'keep')
    return [runId, workerId]
  }),
  scenario({ refuseWish }, 'the name is taken', async ({ store }) => {
    const { runId, workerId } = await wanted(store, 'keep')
    return [runId, workerId, 'there is a branch of that name']
  }),
]

export const WORKSPACE_SCENARIOS: readonly Scenario[] = [...working, ...ending, ...settling, ...asking]
