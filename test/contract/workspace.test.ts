import { describe, expect, test } from 'vitest'

import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import { parkRun } from '../../src/runs/park.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { askDiscard, askKeep, askLand, askRetry } from '../../src/workspace/ask.ts'
import { activateWorkspace, checkpointWorkspace, openWorkspace, resumeWorkspace } from '../../src/workspace/open.ts'
import { beginCheck, concludeCheck, prepareWorkspace, takeLanding } from '../../src/workspace/prepare.ts'
import { reportLines } from '../../src/workspace/report.ts'
import {
  claimSettling,
  decideAgain,
  discardedWorkspace,
  keptWorkspace,
  landedWorkspace,
  observedWorkspace,
  postponeSettling,
  quarantineWorkspace,
  readyWorkspace,
  sweepWorkspace,
  sweepableOn,
  takeLandingLate,
  unsettledOn,
} from '../../src/workspace/settle.ts'
import { viewWorkspace } from '../../src/workspace/view.ts'
import { listWorkspaces, workspacesByPrefix } from '../../src/workspace/workspace.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import {
  LANDS,
  TIP,
  WORK,
  candidate,
  claimed,
  failed,
  opening,
  passed,
  prepared,
  request,
  settlingAfter,
  workingUpTo,
  workspaceOf,
} from '../support/workspaces.ts'
import type { Working } from '../support/workspaces.ts'
import { LEASE_MS, addWorker, reread, someIdentity } from '../support/world.ts'

const succeeded: Outcome = { state: 'succeeded' }
const broke: Outcome = { state: 'failed', code: 'exit', error: 'exited with status 1' }
const HOST = someIdentity().host
const person = { by: 'a person' }

const opened = async (engine: (typeof engines)[number], clock?: FakeClock) =>
  (await engine.database()).open(clock === undefined ? {} : { clock })

async function taken(store: Store, { ref, attempt }: Working): Promise<void> {
  const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
  await store.apply(takeOverRun, { ...ref, mark: attempt.mark }, 'owner-dead', taker)
}

const stateOf = async (store: Store, { ref }: Working) => (await workspaceOf(store, ref.runId)).state

/** From where, and how it goes on. */
const nextSteps = (store: Store) =>
  [
    ['opened', (working: Working) => store.apply(activateWorkspace, working.ref)],
    ['active', (working: Working) => store.apply(prepareWorkspace, working.ref, prepared)],
    ['prepared', (working: Working) => store.apply(takeLanding, working.ref)],
    ['locked', (working: Working) => store.apply(beginCheck, working.ref, candidate)],
    ['checking', (working: Working) => store.apply(concludeCheck, working.ref, LANDS, passed)],
    ['checked', (working: Working) => store.apply(resumeWorkspace, working.ref)],
  ] as const

describe.each(engines)('a workspace on $name', (engine) => {
  test('is decided by the very transaction in which its run succeeds, with the commit that was checked [workspace/all-or-nothing] [X2]', async () => {
    const store = await opened(engine)
    const working = await workingUpTo(store, 'checked')
    await store.apply(finishRun, working.ref, succeeded)
    const workspace = await workspaceOf(store, working.ref.runId)
    expect(workspace).toMatchObject({ state: 'decided', sha: LANDS, checkedOn: TIP, landing: true, passed: true })
    await assertInvariants(store)
  })

  test.each(['opened', 'active', 'prepared', 'locked', 'checking'] as const)(
    'that is %s cannot belong to a run that succeeded: the end is refused whole [workspace/all-or-nothing] [X1]',
    async (step) => {
      const store = await opened(engine)
      const working = await workingUpTo(store, step)
      await expect(store.apply(finishRun, working.ref, succeeded)).rejects.toMatchObject({ code: 'internal/invariant' })
      expect((await reread(store, working.ref.runId)).state).toBe('running')
      await assertInvariants(store)
    },
  )

  test('whose check failed cannot belong to a run that succeeded [X1]', async () => {
    const store = await opened(engine)
    const working = await workingUpTo(store, 'checking')
    await store.apply(concludeCheck, working.ref, LANDS, failed)
    await expect(store.apply(finishRun, working.ref, succeeded)).rejects.toMatchObject({ code: 'internal/invariant' })
    const outcome = { state: 'failed', code: 'validation', error: 'the check exited with status 1' } as const
    await store.apply(finishRun, working.ref, outcome)
    expect(await workspaceOf(store, working.ref.runId)).toMatchObject({
      state: 'discarding',
      landing: false,
      reason: 'its run failed (validation)',
      verdict: failed,
    })
    await assertInvariants(store)
  })

  test.each(['opened', 'active', 'prepared', 'locked', 'checking', 'checked'] as const)(
    'that is %s is discarded when its run fails or is cancelled, and gives the lock back [workspace/all-or-nothing] [X2]',
    async (step) => {
      const store = await opened(engine)
      const failing = await workingUpTo(store, step)
      await store.apply(finishRun, failing.ref, broke)
      const cancelled = await workingUpTo(store, step)
      await store.apply(cancelRun, cancelled.ref.runId, person)
      await store.apply(finishRun, cancelled.ref, succeeded)
      for (const { ref } of [failing, cancelled])
        expect(await workspaceOf(store, ref.runId)).toMatchObject({ state: 'discarding', landing: false })
      expect((await reread(store, cancelled.ref.runId)).state).toBe('cancelled')
      await assertInvariants(store)
    },
  )

  test('goes no step further once its run is to be cancelled [X2]', async () => {
    const store = await opened(engine)
    for (const [step, go] of nextSteps(store)) {
      const working = await workingUpTo(store, step, { repo: `/repo/${step}` })
      await store.apply(cancelRun, working.ref.runId, person)
      expect(await go(working), step).toEqual({ kind: 'cancel-requested' })
    }
  })

  test('is moved by nobody who lost the claim of its run [runs/fenced]', async () => {
    const store = await opened(engine)
    for (const [step, go] of nextSteps(store)) {
      const working = await workingUpTo(store, step, { repo: `/repo/${step}` })
      await taken(store, working)
      expect(await go(working), step).toEqual({ kind: 'superseded' })
      await expect(store.apply(finishRun, working.ref, succeeded)).resolves.toMatchObject({ kind: 'reconciled' })
    }
    await assertInvariants(store)
  })

  test('waits for the one that is landing in its repository, and for none in another; the end of that one lets it go on', async () => {
    const store = await opened(engine)
    const first = await workingUpTo(store, 'checked')
    const second = await workingUpTo(store, 'prepared')
    const elsewhere = await workingUpTo(store, 'prepared', { repo: '/other/.git' })
    expect(await store.apply(takeLanding, second.ref)).toEqual({ kind: 'waiting', holder: first.ref.runId })
    expect(await store.apply(takeLanding, elsewhere.ref)).toMatchObject({ kind: 'done' })

    await store.apply(finishRun, first.ref, succeeded)
    expect(await store.apply(takeLanding, second.ref)).toMatchObject({ kind: 'waiting' })
    const workerId = await addWorker(store)
    await store.apply(claimSettling, first.ref.runId, { workerId, leaseMs: LEASE_MS })
    await store.apply(landedWorkspace, first.ref.runId, workerId, null, 0)
    expect(await store.apply(takeLanding, second.ref)).toMatchObject({ kind: 'done', workspace: { landing: true } })
    await assertInvariants(store)
  })

  test('keeps the lock when another worker takes its run over', async () => {
    const store = await opened(engine)
    const working = await workingUpTo(store, 'checked')
    await taken(store, working)
    expect((await workspaceOf(store, working.ref.runId)).landing).toBe(true)
    expect(await store.apply(takeLanding, (await workingUpTo(store, 'prepared')).ref)).toMatchObject({
      kind: 'waiting',
    })
  })

  test('belongs to a run that is claimed on its machine alone, also after it waited', async () => {
    const store = await opened(engine)
    const working = await workingUpTo(store, 'active')
    await store.apply(checkpointWorkspace, working.ref, WORK)
    await store.apply(parkRun, working.ref, 'something', 0)
    const { resumeRun } = await import('../../src/runs/park.ts')
    await store.apply(resumeRun, working.ref.runId)
    const claimant = async (host: string) => ({
      workerId: await addWorker(store),
      leaseMs: LEASE_MS,
      limits: {},
      host,
      attempt: { id: newAttemptId(random), mark: random.hex(16) },
    })
    expect(await store.apply(claimRun, await claimant('another'))).toBeUndefined()
    const again = await store.apply(claimRun, await claimant(HOST))
    expect(again?.run.id).toBe(working.ref.runId)
    expect(await workspaceOf(store, working.ref.runId)).toMatchObject({ state: 'active', work: WORK })
  })

  test('of an agent that goes on after it was checked is active again, without the lock and without the verdict', async () => {
    const store = await opened(engine)
    const working = await workingUpTo(store, 'checked')
    await store.apply(resumeWorkspace, working.ref)
    expect(await workspaceOf(store, working.ref.runId)).toMatchObject({
      state: 'active',
      landing: false,
      passed: false,
      verdict: null,
      sha: null,
      checkMark: null,
    })
  })

  test('is written down once, whoever opens it again', async () => {
    const store = await opened(engine)
    const working = await claimed(store)
    await store.apply(openWorkspace, working.ref, opening())
    const again = await store.apply(openWorkspace, working.ref, opening({ base: WORK }))
    expect(again).toMatchObject({ kind: 'done', workspace: { base: opening().base } })
    expect(await stateOf(store, working)).toBe('opened')
  })
})

describe.each(engines)('what the end of a run decided about its files, on $name', (engine) => {
  test('is settled by one process at a time; by another when that one is dead, or its time is over', async () => {
    const clock = new FakeClock()
    const store = await opened(engine, clock)
    const { runId, workerId } = await settlingAfter(store, succeeded)
    const other = await addWorker(store)
    expect(await store.apply(claimSettling, runId, { workerId: other, leaseMs: LEASE_MS })).toBeUndefined()
    expect(await store.read(unsettledOn, HOST, 10)).toMatchObject([{ runId, settler: workerId, isDue: 0 }])
    const dead = await store.apply(claimSettling, runId, { workerId: other, leaseMs: LEASE_MS, dead: workerId })
    expect(dead).toMatchObject({ settler: other })
    expect(await store.apply(landedWorkspace, runId, workerId, null, 0)).toBeUndefined()
    clock.advance(LEASE_MS + 1)
    expect(await store.read(unsettledOn, HOST, 10)).toMatchObject([{ isDue: 1 }])
    expect(await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })).toBeDefined()
    expect(await store.apply(landedWorkspace, runId, other, null, 0)).toBeUndefined()
    expect(await store.apply(landedWorkspace, runId, workerId, null, 0)).toMatchObject({ state: 'landed' })
    expect(await store.read(unsettledOn, HOST, 10)).toEqual([])
    await assertInvariants(store)
  })

  test('is tried again after a while when it could not be done, with the reason', async () => {
    const clock = new FakeClock()
    const store = await opened(engine, clock)
    const { runId, workerId } = await settlingAfter(store, broke)
    await store.apply(postponeSettling, runId, workerId, 'no space left', 5_000)
    expect(await workspaceOf(store, runId)).toMatchObject({
      state: 'discarding',
      error: 'no space left',
      settler: null,
    })
    expect(await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })).toBeUndefined()
    clock.advance(5_001)
    expect(await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })).toBeDefined()
  })

  test('can be kept by a person until its time is over, and then is swept once', async () => {
    const clock = new FakeClock()
    const store = await opened(engine, clock)
    const { runId, workerId } = await settlingAfter(store, broke)
    await store.apply(discardedWorkspace, runId, workerId, prepared, 60_000)
    expect(await store.read(sweepableOn, HOST, 10)).toEqual([])
    expect(await store.apply(sweepWorkspace, runId)).toBe(false)
    clock.advance(60_001)
    expect(await store.read(sweepableOn, HOST, 10)).toMatchObject([{ runId }])
    expect(await store.apply(sweepWorkspace, runId)).toBe(true)
    expect(await store.apply(sweepWorkspace, runId)).toBe(false)
    expect(await store.apply(askKeep, runId, person, 'kept')).toMatchObject({ kind: 'refused' })
    expect(viewWorkspace(await workspaceOf(store, runId))).toMatchObject({
      state: 'discarded',
      sweptAt: expect.any(String),
    })
  })

  test('of discarded work is reversed by `keep`, and what is wanted is not swept meanwhile', async () => {
    const clock = new FakeClock()
    const store = await opened(engine, clock)
    const { runId, workerId } = await settlingAfter(store, broke)
    await store.apply(discardedWorkspace, runId, workerId, prepared, 60_000)
    expect(await store.apply(askKeep, runId, person, 'mine')).toMatchObject({ kind: 'asked' })
    clock.advance(60_001)
    expect(await store.apply(sweepWorkspace, runId)).toBe(false)
    expect(await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })).toMatchObject({ wish: 'keep' })
    expect(await store.apply(keptWorkspace, runId, workerId)).toMatchObject({ state: 'kept', keptAs: 'mine' })
    await assertInvariants(store)
  })

  test('of work that is ready is landed again with what was checked then, and nothing else', async () => {
    const store = await opened(engine)
    const { runId, workerId } = await settlingAfter(store, succeeded)
    await store.apply(readyWorkspace, runId, workerId, 'the branch moved')
    expect(await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })).toBeUndefined()
    expect(await store.apply(askLand, runId, person)).toMatchObject({ kind: 'asked' })
    expect(await store.apply(askDiscard, runId, person)).toMatchObject({ kind: 'refused' })
    await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })
    const again = { checkedOn: LANDS, sha: WORK, verdict: passed }
    expect(await store.apply(decideAgain, runId, workerId, again)).toBeUndefined()
    expect(await store.apply(takeLandingLate, runId, workerId)).toMatchObject({ landing: true })
    expect(await store.apply(decideAgain, runId, workerId, again)).toMatchObject({ state: 'decided', sha: WORK })
    await store.apply(landedWorkspace, runId, workerId, null, 0)
    expect(await workspaceOf(store, runId)).toMatchObject({ state: 'landed', wish: null, landing: false, error: null })
    await assertInvariants(store)
  })

  test('can be given up by a person where its landing is stuck, also what a person let land, and by nobody while it is tried [X4]', async () => {
    const clock = new FakeClock()
    const store = await opened(engine, clock)
    const { runId, workerId } = await settlingAfter(store, succeeded)
    await store.apply(readyWorkspace, runId, workerId, 'the branch moved')
    await store.apply(askLand, runId, person)
    await store.apply(claimSettling, runId, { workerId, leaseMs: LEASE_MS })
    await store.apply(takeLandingLate, runId, workerId)
    await store.apply(decideAgain, runId, workerId, { checkedOn: LANDS, sha: WORK, verdict: passed })
    await store.apply(postponeSettling, runId, workerId, 'its tree is not there', 5_000)
    clock.advance(5_001)
    const other = await addWorker(store)
    await store.apply(claimSettling, runId, { workerId: other, leaseMs: LEASE_MS })
    expect(await store.apply(askDiscard, runId, person)).toMatchObject({ kind: 'refused' })
    await store.apply(postponeSettling, runId, other, 'its tree is not there', 5_000)
    for (const ask of [askLand, askRetry])
      expect(await store.apply(ask, runId, person)).toMatchObject({ kind: 'refused' })
    expect(await store.apply(askDiscard, runId, person)).toMatchObject({
      workspace: { state: 'discarding', landing: false, wish: null, sha: WORK, checkedOn: LANDS },
    })
    expect(await store.apply(takeLanding, (await workingUpTo(store, 'prepared')).ref)).toMatchObject({ kind: 'done' })
    await store.apply(claimSettling, runId, { workerId: other, leaseMs: LEASE_MS })
    expect(await store.apply(landedWorkspace, runId, other, 'main had it', 0)).toMatchObject({ state: 'landed' })
    await assertInvariants(store)
  })

  test("that is decided, and in nobody's way, is discarded by nobody", async () => {
    const store = await opened(engine)
    const { ref } = await workingUpTo(store, 'checked')
    await store.apply(finishRun, ref, succeeded)
    expect(await store.apply(askDiscard, ref.runId, person)).toMatchObject({ kind: 'refused' })
  })

  test('that ended in quarantine waits for a person: a retry goes on where it was, a discard ends it [X4]', async () => {
    const store = await opened(engine)
    const first = await settlingAfter(store, succeeded)
    await store.apply(quarantineWorkspace, first.runId, first.workerId, 'the repository is gone')
    expect(await workspaceOf(store, first.runId)).toMatchObject({ state: 'quarantined', cameFrom: 'decided' })
    expect(await store.read(unsettledOn, HOST, 10)).toEqual([])
    expect(await store.apply(askRetry, first.runId, person)).toMatchObject({ workspace: { state: 'decided' } })

    const second = await settlingAfter(store, broke)
    await store.apply(quarantineWorkspace, second.runId, second.workerId, 'the repository is gone')
    expect(await store.apply(askRetry, second.runId, person)).toMatchObject({ workspace: { state: 'discarding' } })
    await assertInvariants(store)
  })

  test('in a shadow is only a report, which says the same however often it is made [X5]', async () => {
    const store = await opened(engine)
    const { run, ref } = await claimed(store, 'shadow')
    await store.apply(openWorkspace, ref, opening({ request: request('shadow') }))
    await store.apply(activateWorkspace, ref, TIP)
    await store.apply(finishRun, ref, succeeded)
    expect((await workspaceOf(store, run.id)).state).toBe('observing')
    const workerId = await addWorker(store)
    await store.apply(claimSettling, run.id, { workerId, leaseMs: LEASE_MS })
    const { work: _, ...changes } = prepared
    const seen = { ...changes, lands: false, verdict: failed, reason: failed.why ?? null, error: null }
    await store.apply(observedWorkspace, run.id, workerId, seen)
    const report = await store.read(reportLines, { limit: 10 })
    expect(report).toMatchObject([
      {
        runId: run.id,
        mode: 'shadow',
        state: 'would_discard',
        runState: 'succeeded',
        changedCount: 1,
        verdict: failed,
      },
    ])
    expect(await store.read(reportLines, { limit: 10 })).toEqual(report)
    expect((await reread(store, run.id)).state).toBe('succeeded')
    for (const ask of [askLand, askDiscard, askRetry])
      expect(await store.apply(ask, run.id, person)).toMatchObject({ kind: 'refused' })
    await assertInvariants(store)
  })

  test('is listed newest first, in pages, by state and by the start of its run', async () => {
    const store = await opened(engine)
    const ids = []
    for (const outcome of [succeeded, broke, succeeded])
      ids.push((await settlingAfter(store, outcome, { repo: `/repo/${ids.length}` })).runId)
    const listed = async (filter: object) =>
      (await store.read(listWorkspaces, { limit: 10, ...filter })).map((each) => each.runId)
    expect(await listed({})).toEqual(ids.toReversed())
    expect(await listed({ states: ['discarding'] })).toEqual([ids[1]])
    expect(await listed({ after: ids[2], limit: 1 })).toEqual([ids[1]])
    expect(await listed({ repo: { host: HOST, path: '/repo/0' } })).toEqual([ids[0]])
    expect(await store.read(workspacesByPrefix, ids[0]!)).toHaveLength(1)
    expect(await store.read(workspacesByPrefix, 'run_')).toHaveLength(2)
  })
})
