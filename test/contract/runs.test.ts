import { describe, expect, test } from 'vitest'

import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { eventsAfter, lastEventSeq } from '../../src/events/event.ts'
import { recordStarting, renewLeases } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { usedSlots } from '../../src/runs/capacity.ts'
import { finishRun, keepLateResult } from '../../src/runs/finish.ts'
import { parkRun, resumeRun } from '../../src/runs/park.ts'
import {
  abandonReserved,
  disownRun,
  expireQueued,
  handOverRun,
  heldAttempts,
  requeueRun,
  reservedRuns,
  takeOverRun,
} from '../../src/runs/recover.ts'
import { lateResultsOf, listRuns, runsByPrefix } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { noteTrace } from '../../src/runs/trace.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants, snapshot } from '../support/invariants.ts'
import {
  LEASE_MS,
  aThread,
  addWorker,
  claim,
  reread,
  running,
  someIdentity,
  submission,
  submit,
  submitted,
} from '../support/world.ts'

const succeeded = { state: 'succeeded', result: { exitCode: 0 } } as const
const failed = { state: 'failed', code: 'exit', error: 'exited with status 1' } as const
const cancelled = { state: 'cancelled' } as const

describe.each(engines)('runs on $name', (engine) => {
  const open = async () => {
    const clock = new FakeClock()
    const store = await (await engine.database()).open({ clock })
    return { store, clock }
  }

  test('a run goes from the queue to one terminal state, with an event for each step', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    expect(await store.apply(finishRun, ref, succeeded)).toMatchObject({
      kind: 'finished',
      run: { state: 'succeeded' },
    })
    const types = (await store.read(eventsAfter, 0, 100)).map(({ type }) => type)
    expect(types).toEqual(['thread.created', 'run.queued', 'run.started', 'run.finished'])
    expect(await reread(store, run.id)).toMatchObject({ state: 'succeeded', attempt: 1, result: { exitCode: 0 } })
    await assertInvariants(store)
  })

  test('a second finish does not overwrite the first and changes nothing at all [T1] [T3] [runs/one-terminal]', async () => {
    const { store } = await open()
    const parentThreadId = aThread()
    await store.apply(openThread, parentThreadId, 'conductor', null)
    for (const first of [succeeded, failed]) {
      const { ref } = await running(store, { parentThreadId }, { total: 2 })
      await store.apply(finishRun, ref, first)
      const before = await snapshot(store)
      for (const late of [succeeded, failed, cancelled]) {
        const answer = await store.apply(finishRun, ref, late)
        expect(answer).toMatchObject({ kind: 'reconciled', run: { state: first.state } })
      }
      expect(await snapshot(store)).toEqual(before)
    }
    await assertInvariants(store)
  })

  test('a success that comes after cancel was requested ends the run cancelled, and is kept beside it [T2] [runs/cancel-is-final] [runs/paid-work-kept]', async () => {
    const { store } = await open()
    const parentThreadId = aThread()
    await store.apply(openThread, parentThreadId, 'conductor', null)
    const { run, ref } = await running(store, { parentThreadId })
    expect(await store.apply(cancelRun, run.id, { by: 'tester' })).toMatchObject({ kind: 'requested' })
    expect(await store.apply(finishRun, ref, succeeded)).toMatchObject({
      kind: 'reconciled',
      run: { state: 'cancelled' },
    })
    expect(await store.read(lateResultsOf, run.id)).toMatchObject([{ outcome: succeeded }])
    expect(await store.read(messagesOf, parentThreadId)).toMatchObject([
      { kind: 'completion', body: { state: 'cancelled' } },
    ])
    expect((await reread(store, run.id)).result).toBeNull()
    await assertInvariants(store)
  })

  test('cancel ends a queued or parked run at once, a running one only when its worker says so [runs/cancel-is-final]', async () => {
    const { store } = await open()
    const queued = await submitted(store)
    const parked = await running(store)
    await store.apply(parkRun, parked.ref, 'a person')
    const live = await running(store)
    expect(await store.apply(cancelRun, queued.id, { by: 'tester' })).toMatchObject({ kind: 'cancelled' })
    expect(await store.apply(cancelRun, parked.run.id, { by: 'tester' })).toMatchObject({ kind: 'cancelled' })
    expect(await store.apply(cancelRun, live.run.id, { by: 'tester' })).toMatchObject({
      kind: 'requested',
      run: { state: 'running' },
    })
    expect(await store.apply(cancelRun, live.run.id, { by: 'again' })).toMatchObject({
      kind: 'requested',
      run: { cancelBy: 'tester' },
    })
    await store.apply(finishRun, live.ref, cancelled)
    expect(await store.apply(cancelRun, live.run.id, { by: 'late' })).toMatchObject({ kind: 'already-terminal' })
    expect(await store.apply(cancelRun, 'run_unknown' as never, { by: 'x' })).toEqual({ kind: 'unknown-run' })
    await assertInvariants(store)
  })

  test('cancel after success changes nothing [T3]', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    await store.apply(finishRun, ref, succeeded)
    const before = await snapshot(store)
    expect(await store.apply(cancelRun, run.id, { by: 'late' })).toMatchObject({
      kind: 'already-terminal',
      run: { state: 'succeeded' },
    })
    expect(await snapshot(store)).toEqual(before)
  })

  test('nobody can end a run as cancelled that was not asked to be', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    expect(await store.apply(finishRun, ref, cancelled)).toMatchObject({
      kind: 'reconciled',
      run: { state: 'running' },
    })
    expect((await reread(store, run.id)).state).toBe('running')
  })

  test('a worker that lost its claim can change nothing [runs/fenced]', async () => {
    const { store, clock } = await open()
    const { run, ref, attempt } = await running(store)
    const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const held = { ...ref, mark: attempt.mark }
    expect(await store.apply(takeOverRun, held, 'lease-over', taker)).toBeUndefined()
    clock.advance(LEASE_MS + 1)
    const taken = await store.apply(takeOverRun, held, 'lease-over', taker)
    expect(taken).toMatchObject({ run: { fence: 2, attempt: 2 }, attempt: { mark: attempt.mark } })
    const before = await snapshot(store)
    expect(await store.apply(finishRun, ref, succeeded)).toMatchObject({
      kind: 'reconciled',
      run: { state: 'running' },
    })
    expect(await store.apply(recordStarting, ref)).toBe('superseded')
    expect(await store.apply(parkRun, ref, 'x')).toMatchObject({ kind: 'refused' })
    expect(await store.apply(renewLeases, attempt.workerId, LEASE_MS)).toEqual([])
    expect(await store.apply(handOverRun, ref)).toBe(false)
    expect(await store.apply(noteTrace, ref, 1, 'a trace')).toBe(false)
    expect(await snapshot(store)).toEqual(before)
    await store.apply(finishRun, { id: taker.attemptId, runId: run.id, fence: 2 }, failed)
    await assertInvariants(store)
  })

  test('an expired lease alone is no terminal state: the owner may still finish until it is fenced', async () => {
    const { store, clock } = await open()
    const { ref } = await running(store)
    clock.advance(LEASE_MS * 10)
    expect(await store.read(heldAttempts)).toMatchObject([{ id: ref.id, leaseOver: 1 }])
    expect(await store.apply(finishRun, ref, succeeded)).toMatchObject({ kind: 'finished' })
  })

  test('a taker proves its ground: a live lease is not taken, a released one is', async () => {
    const { store } = await open()
    const { ref, attempt } = await running(store, {}, { total: 1 })
    const taker = () => ({ workerId: attempt.workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
    const held = { ...ref, mark: attempt.mark }
    expect(await store.apply(takeOverRun, held, 'released', taker())).toBeUndefined()
    expect(await store.apply(handOverRun, ref)).toBe(true)
    expect(await store.apply(takeOverRun, held, 'released', taker())).toMatchObject({ run: { fence: 2 } })
    expect(await store.apply(takeOverRun, held, 'released', taker())).toBeUndefined()
    expect(await store.read(usedSlots)).toEqual([{ scope: 'total', used: 1 }])
    await assertInvariants(store)
  })

  test('from a host that cannot be reached a claim is taken only while it has not recorded its intent [runs/fenced]', async () => {
    const { store, clock } = await open()
    const taker = async () => ({ workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
    const [idle, woken] = [await running(store), await running(store)]
    clock.advance(LEASE_MS + 1)
    expect(await store.apply(recordStarting, woken.ref)).toBe('starting')
    const held = ({ ref, attempt }: typeof idle) => ({ ...ref, mark: attempt.mark })
    expect(await store.apply(takeOverRun, held(woken), 'unstarted', await taker())).toBeUndefined()
    expect(await store.apply(takeOverRun, held(idle), 'unstarted', await taker())).toMatchObject({ run: { fence: 2 } })
    expect(await store.apply(recordStarting, idle.ref)).toBe('superseded')
    await assertInvariants(store)
  })

  test('a person cannot disown a run whose worker has renewed its claim meanwhile', async () => {
    const { store, clock } = await open()
    const { run, attempt } = await running(store)
    clock.advance(LEASE_MS + 1)
    const [held] = await store.read(heldAttempts)
    await store.apply(renewLeases, attempt.workerId, LEASE_MS)
    const taker = {
      workerId: await addWorker(store),
      leaseMs: LEASE_MS,
      attemptId: newAttemptId(random),
      mark: 'other',
    }
    expect(await store.apply(disownRun, held!, taker, 'a person')).toBeUndefined()
    clock.advance(LEASE_MS + 1)
    expect(await store.apply(disownRun, held!, taker, 'a person')).toMatchObject({ run: { id: run.id, code: 'lost' } })
  })

  test('a run that was parked for longer than it might have waited in the queue is not expired', async () => {
    const { store, clock } = await open()
    const { run, ref } = await running(store, { expiresInMs: 1_000 })
    await store.apply(parkRun, ref, 'a person')
    clock.advance(60_000)
    await store.apply(resumeRun, run.id)
    expect(await store.apply(expireQueued, 10)).toBe(0)
    expect(await claim(store, await addWorker(store))).toBeDefined()
  })

  test('an end that is reported again is not its own late result', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    await store.apply(finishRun, ref, succeeded)
    await store.apply(keepLateResult, ref, succeeded)
    expect(await store.read(lateResultsOf, run.id)).toEqual([])
  })

  test('a cancel that is acknowledged is stored, also of a run that is being submitted at the same moment', async () => {
    const { store } = await open()
    for (let round = 0; round < 25; round++) {
      const asked = submission()
      const [, answer] = await Promise.all([
        store.apply(submitRun, asked),
        store.apply(cancelRun, asked.id, { by: 'tester' }),
      ])
      const found = await reread(store, asked.id)
      expect(found.cancelRequestedAt !== null).toBe(answer.kind !== 'unknown-run')
    }
    await assertInvariants(store)
  })

  test('a late result of a lost attempt is kept once, visible, never applied [runs/paid-work-kept]', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    await store.apply(finishRun, ref, failed)
    await store.apply(keepLateResult, ref, succeeded)
    await store.apply(keepLateResult, ref, succeeded)
    expect(await store.read(lateResultsOf, run.id)).toHaveLength(1)
    expect((await reread(store, run.id)).state).toBe('failed')
    await assertInvariants(store)
  })

  test('what never started goes back to the queue, five times at most', async () => {
    const { store } = await open()
    const run = await submitted(store)
    const workerId = await addWorker(store)
    for (let attempt = 1; attempt <= 5; attempt++) {
      const claimed = await claim(store, workerId)
      const ref = { id: claimed!.attempt.id, runId: run.id, fence: claimed!.run.fence }
      const answer = await store.apply(requeueRun, ref)
      expect(answer.kind).toBe(attempt < 5 ? 'requeued' : 'finished')
    }
    expect(await reread(store, run.id)).toMatchObject({ state: 'failed', code: 'lost', attempt: 5 })
    await assertInvariants(store)
  })

  test('a requeued run that was cancelled meanwhile ends cancelled', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    await store.apply(cancelRun, run.id, { by: 'tester' })
    expect(await store.apply(requeueRun, ref)).toMatchObject({ kind: 'finished', run: { state: 'cancelled' } })
    expect(await store.read(lateResultsOf, run.id)).toEqual([])
  })

  test('parked time is not running time, and a parked run keeps its thread', async () => {
    const { store, clock } = await open()
    const { run, ref } = await running(store, {}, { total: 1 })
    await submitted(store, { threadId: run.threadId })
    await store.apply(parkRun, ref, 'a person')
    expect(await store.read(usedSlots)).toEqual([])
    clock.advance(60_000)
    const workerId = await addWorker(store)
    expect(await claim(store, workerId)).toBeUndefined()
    await store.apply(resumeRun, run.id)
    expect(await reread(store, run.id)).toMatchObject({ state: 'queued', parkedMs: 60_000 })
    expect((await claim(store, workerId))?.run.id).toBe(run.id)
    expect(await claim(store, workerId)).toBeUndefined()
    await assertInvariants(store)
  })

  test('a clock that is set back while a run is parked takes nothing of its time', async () => {
    const { store, clock } = await open()
    const { run, ref } = await running(store)
    await store.apply(parkRun, ref, 'a person')
    clock.advance(-3_600_000)
    await store.apply(resumeRun, run.id)
    expect(await reread(store, run.id)).toMatchObject({ state: 'queued', parkedMs: 0 })
  })

  test('a run whose cancel was requested cannot be parked', async () => {
    const { store } = await open()
    const { run, ref } = await running(store)
    await store.apply(cancelRun, run.id, { by: 'tester' })
    expect(await store.apply(parkRun, ref, 'a person')).toMatchObject({ kind: 'refused' })
    expect(await store.apply(recordStarting, ref)).toBe('cancel-requested')
  })

  test('the same key with the same request is the same run, with another request a conflict', async () => {
    const { store } = await open()
    const answers = await Promise.all(Array.from({ length: 50 }, () => submit(store, { key: 'nightly' })))
    expect(new Set(answers.map((answer) => ('run' in answer ? answer.run.id : 'none')))).toHaveProperty('size', 1)
    expect(answers.filter(({ kind }) => kind === 'submitted')).toHaveLength(1)
    const other = { key: 'nightly', request: { kind: 'command', argv: ['false'], cwd: '/' } } as const
    expect(await submit(store, other)).toMatchObject({ kind: 'conflict' })
    expect(await store.read(listRuns, { limit: 10 })).toHaveLength(1)
  })

  test('a second worker of the same home folder is kept out until the first is proven dead', async () => {
    const { store } = await open()
    const daemon = (id: string) =>
      ({ id: id as never, kind: 'daemon', home: '/same', identity: someIdentity() }) as const
    expect(await store.apply(registerWorker, daemon('wrk_1'))).toMatchObject({ kind: 'registered' })
    expect(await store.apply(registerWorker, daemon('wrk_2'))).toMatchObject({ kind: 'occupied', by: { id: 'wrk_1' } })
    expect(await store.apply(registerWorker, daemon('wrk_2'), 'wrk_1' as never)).toMatchObject({ kind: 'registered' })
    expect(await store.apply(registerWorker, daemon('wrk_3'), 'wrk_1' as never)).toMatchObject({ kind: 'occupied' })
  })

  test('an id that is reused starts a new generation', async () => {
    const { store } = await open()
    const id = 'conductor' as ReturnType<typeof aThread>
    await store.apply(openThread, id, 'a', null)
    await store.apply(openThread, id, 'b', null)
    expect(await store.read(findThread, id)).toMatchObject({ generation: 1, agent: 'a' })
  })

  test('prefixes find runs and tell when they are not unique', async () => {
    const { store } = await open()
    const run = await submitted(store)
    await submitted(store)
    expect(await store.read(runsByPrefix, run.id.slice(0, -1))).toMatchObject([{ id: run.id }])
    expect(await store.read(runsByPrefix, 'run_')).toHaveLength(2)
    expect(await store.read(runsByPrefix, 'run_%')).toEqual([])
  })

  test('everything after N: events come in order, none twice, none left out', async () => {
    const { store } = await open()
    await Promise.all(Array.from({ length: 40 }, () => submitted(store)))
    const seen: number[] = []
    for (let after = 0; ; after = seen.at(-1)!) {
      const page = await store.read(eventsAfter, after, 7)
      if (page.length === 0) break
      seen.push(...page.map(({ seq }) => seq))
    }
    expect(seen).toHaveLength(80)
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    expect((await store.read(lastEventSeq)).seq).toBe(seen.at(-1))
  })

  test('a request that is too large is refused with what to do instead', async () => {
    const { store } = await open()
    const request = { kind: 'command', argv: ['x'.repeat(300_000)], cwd: '/' } as const
    await expect(submit(store, { request })).rejects.toMatchObject({ code: 'usage/request-too-large' })
  })

  test('what waited too long in the queue expires and tells its parent', async () => {
    const { store, clock } = await open()
    const parentThreadId = aThread()
    await store.apply(openThread, parentThreadId, 'conductor', null)
    const run = await submitted(store, { expiresInMs: 1_000, parentThreadId })
    expect(await store.apply(expireQueued, 10)).toBe(0)
    clock.advance(1_001)
    expect(await claim(store, await addWorker(store))).toBeUndefined()
    expect(await store.apply(expireQueued, 10)).toBe(1)
    expect(await reread(store, run.id)).toMatchObject({ state: 'failed', code: 'expired' })
    expect(await store.read(messagesOf, parentThreadId)).toHaveLength(1)
    await assertInvariants(store)
  })

  test('a run kept for one worker is claimed by no other, and ends when that worker is gone', async () => {
    const { store } = await open()
    const [mine, other] = [await addWorker(store), await addWorker(store)]
    const run = await submitted(store, { forWorker: mine })
    expect(await claim(store, other)).toBeUndefined()
    expect(await store.read(reservedRuns)).toMatchObject([{ runId: run.id, workerId: mine }])
    expect(await store.apply(abandonReserved, run.id, other)).toBeUndefined()
    expect(await store.apply(abandonReserved, run.id, mine)).toMatchObject({ run: { state: 'failed', code: 'lost' } })
    await assertInvariants(store)
  })

  test('a parent that is not known yet has its completion held for it', async () => {
    const { store } = await open()
    const parentThreadId = aThread()
    const { ref } = await running(store, { parentThreadId: parentThreadId })
    await store.apply(finishRun, ref, succeeded)
    expect(await store.read(messagesOf, parentThreadId)).toMatchObject([
      { state: 'pending', nextAttemptAt: expect.any(Number) as number },
    ])
  })

  test('no-notify delivers nothing, and what it kept back can be listed', async () => {
    const { store } = await open()
    const parentThreadId = aThread()
    await store.apply(openThread, parentThreadId, 'conductor', null)
    const { ref } = await running(store, { ...submission(), parentThreadId, notify: false })
    await store.apply(finishRun, ref, succeeded)
    expect(await store.read(messagesOf, parentThreadId)).toMatchObject([{ state: 'dead', reason: 'no-notify' }])
  })
})
