import { describe, expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { newAttemptId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { callAll, callHere, callOne, claimCalls, giveBackCall, openCalls, refOfCall } from '../../src/runs/call.ts'
import type { ClaimedCall, NewCall } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { findAction } from '../../src/actions/action.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { Resolution } from '../../src/actions/doubt.ts'
import { readStatement } from '../../src/actions/statement.ts'
import { startAgain } from '../../src/actions/step-doubt.ts'
import { finishCall, parkCall } from '../../src/runs/finish-call.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { advanceRun, stepsOf } from '../../src/runs/step.ts'
import { readWholeRun, viewWholeRun } from '../../src/runs/view.ts'
import type { StepOutcome } from '../../src/runs/step.ts'
import type { Store } from '../../src/store/store.ts'
import type { Executor } from '../../src/workers/execute.ts'
import { RecordedRun } from '../../src/workers/functions/function-run.ts'
import { Stop } from '../../src/workers/functions/stop.ts'
import { judgeDoubted } from '../../src/workers/functions/judge-step.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'

const aCall = (more: Partial<NewCall> = {}): NewCall => ({
  id: newRunId(random),
  agent: 'adder',
  input: '[1]',
  ...more,
})

const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))

const done = (name: string): StepOutcome => ({
  name,
  effect: 'write',
  tries: 1,
  state: 'done',
  result: JSON.stringify(name),
  error: null,
  by: null,
})

const doubtful = (name: string): StepOutcome => ({
  ...done(name),
  state: 'in_doubt',
  result: null,
  error: 'cut off',
  by: 'nobody',
})

async function claimed(store: Store, count: number): Promise<ClaimedCall[]> {
  const workerId = await addWorker(store)
  const attempts = many(count, () => newAttemptId(random))
  return store.apply(claimCalls, { workerId, leaseMs: LEASE_MS, agents: ['adder'], attempts })
}

async function called(store: Store, count: number): Promise<ClaimedCall[]> {
  await store.apply(openCalls, 'adder')
  await Promise.all(many(count, () => store.apply(callOne, aCall())))
  return claimed(store, count)
}

// What is asked for at once shares a commit and, on PostgreSQL, statements: each must still get its own answer.
describe.each(engines)('calls of functions on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('of many that come at once each is stored, and one key is one run', async () => {
    const store = await open()
    await store.apply(openCalls, 'adder')
    const asked = many(20, (index) => aCall({ key: `key-${index % 15}`, input: index === 19 ? '[2]' : '[1]' }))
    const answers = await Promise.all(asked.map((call) => store.apply(callOne, call)))
    const kinds = answers.map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'called')).toHaveLength(15)
    expect(kinds.filter((kind) => kind !== 'called').toSorted()).toEqual(['conflict', ...many(4, () => 'existing')])
    answers.forEach(({ runId }, index) => expect(runId).toBe(answers[index % 15]!.runId))
    await assertInvariants(store)
  })

  test('two workers that claim at once get parts that have nothing in common, the most urgent first', async () => {
    const database = await engine.database()
    const stores = [await database.open(), await database.open()] as const
    await stores[0].apply(openCalls, 'adder')
    const [low, high] = [many(30, () => aCall()), many(10, () => aCall({ priority: 1 }))]
    await stores[0].apply(callAll, [...low, ...high])
    const parts = await Promise.all(stores.map((store) => claimed(store, 10)))
    const ids = parts.flat().map(({ id }) => id)
    expect(new Set(ids).size).toBe(20)
    expect(high.every(({ id }) => ids.includes(id))).toBe(true)
    await assertInvariants(stores[0])
  })

  test('many that go on at once: each hears what became of it, and who lost its claim changes nothing [runs/fenced]', async () => {
    const store = await open()
    const calls = await called(store, 12)
    await Promise.all(calls.map((call) => store.apply(advanceRun, refOfCall(call), [], 'first')))
    const [lost, stopped] = calls as [ClaimedCall, ClaimedCall]
    await store.apply(cancelRun, stopped.id, { by: 'tester', reason: 'a test' })
    const held = (await store.read(heldAttempts)).find(({ runId }) => runId === lost.id)!
    const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    await store.apply(takeOverRun, held, 'owner-dead', taker)
    const answers = await Promise.all(
      calls.map((call) => store.apply(advanceRun, refOfCall(call), [done('first')], 'second')),
    )
    expect(answers[0]).toEqual({ kind: 'refused', why: 'superseded' })
    expect(answers[1]).toEqual({ kind: 'refused', why: 'cancel-requested' })
    expect(answers.slice(2).every(({ kind }) => kind === 'recorded')).toBe(true)
    const names = async (id: RunId) => (await store.read(stepsOf, id)).map(({ name, state }) => `${name} ${state}`)
    // What the first step did is a fact, also of a run that is another's or is to end; the second has not begun.
    expect(await names(lost.id)).toEqual(['first done'])
    expect(await names(stopped.id)).toEqual(['first done'])
    expect((await names(calls[5]!.id)).toSorted()).toEqual(['first done', 'second started'])
    await assertInvariants(store)
  })

  test('many that end at once: one end each, with the last step; one that was cancelled ends so [runs/cancel-is-final]', async () => {
    const store = await open()
    const calls = await called(store, 8)
    await Promise.all(calls.map((call) => store.apply(advanceRun, refOfCall(call), [], 'only')))
    await store.apply(cancelRun, calls[3]!.id, { by: 'tester', reason: 'a test' })
    const finish = (call: ClaimedCall, index: number) =>
      store.apply(finishCall, refOfCall(call), call, { state: 'succeeded', result: index }, [done('only')])
    const answers = await Promise.all(calls.map(finish))
    expect(answers.map(({ kind }) => kind)).toEqual(many(8, (index) => (index === 3 ? 'reconciled' : 'finished')))
    const runs = await Promise.all(calls.map(({ id }) => reread(store, id)))
    expect(runs.map(({ state }) => state)).toEqual(many(8, (index) => (index === 3 ? 'cancelled' : 'succeeded')))
    expect(runs[5]!.result).toBe(5)
    // Ended is ended: another end changes nothing.
    await Promise.all(calls.map((call) => finish(call, 99)))
    expect((await reread(store, calls[5]!.id)).result).toBe(5)
    const { actions = [], ...run } = viewWholeRun((await store.read(readWholeRun, calls[5]!.id))!)
    expect(actions).toMatchObject([
      { id: `${run.id}/only`, tool: 'only', effect: 'write', state: 'done', result: 'only' },
    ])
    expect(actions[0]).toMatchObject({
      startedAt: expect.any(String) as string,
      settledAt: expect.any(String) as string,
    })
    await assertInvariants(store)
  })

  test('one that is called where there is a place for it is claimed in the same commit, unless its key is known', async () => {
    const store = await open()
    await store.apply(openCalls, 'adder')
    const workerId = await addWorker(store)
    const place = () => ({ workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
    const calls = many(6, (index) => aCall({ key: `key-${index % 5}` }))
    const answers = await Promise.all(calls.map((call) => store.apply(callHere, call, place())))
    expect(answers.map(({ kind }) => kind).toSorted()).toEqual([...many(5, () => 'claimed'), 'existing'])
    expect(await store.read(heldAttempts)).toHaveLength(5)
    expect((await reread(store, calls[0]!.id)).state).toBe('running')
    await assertInvariants(store)
  })

  test('one whose own thread was forgotten meanwhile is not stored, and says so; those that share its commit are', async () => {
    const store = await (await engine.database()).open()
    await store.apply(openCalls, 'adder')
    const workerId = await addWorker(store)
    const place = () => ({ workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
    const gone = () => aCall({ threadId: 'nowhere' as ThreadId })
    const asked = [
      store.apply(callOne, gone()),
      store.apply(callAll, [aCall(), gone()]),
      store.apply(callHere, gone(), place(), ['first']),
      store.apply(callHere, { ...gone(), key: 'order-7' }, place()),
    ]
    const others = [
      store.apply(callOne, aCall()),
      store.apply(callHere, aCall(), place(), ['first']),
      store.apply(callHere, aCall({ key: 'order-8' }), place()),
    ]
    for (const answer of await Promise.allSettled(asked))
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'usage/thread-gone' } })
    expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(['called', 'claimed', 'claimed'])
    expect(await claimed(store, 9)).toHaveLength(1)
    await assertInvariants(store)
  })

  test('the steps that it begins with are in that commit too; given back, they have not begun, and a fenced holder gives back nothing', async () => {
    const store = await open()
    await store.apply(openCalls, 'adder')
    const workerId = await addWorker(store)
    const place = () => ({ workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
    const answers = await Promise.all(many(5, () => store.apply(callHere, aCall(), place(), ['one', 'two'])))
    const refs = answers.map((answer) => refOfCall((answer as Extract<typeof answer, { kind: 'claimed' }>).call))
    for (const { runId } of refs)
      expect(await states(store, runId)).toEqual(['one started by itself', 'two started by itself'])
    await store.apply(advanceRun, refs[0]!, [done('one')])
    await store.apply(giveBackCall, refs[0]!, ['one', 'two'])
    expect(await states(store, refs[0]!.runId)).toEqual(['one done by itself'])
    const [taken] = (await store.read(heldAttempts)).filter(({ runId }) => runId === refs[1]!.runId)
    const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    expect(await store.apply(takeOverRun, taken!, 'owner-dead', taker)).toBeDefined()
    expect(await store.apply(giveBackCall, refs[1]!, ['one', 'two'])).toBe(false)
    expect(await states(store, refs[1]!.runId)).toHaveLength(2)
    await assertInvariants(store)
  })

  const states = async (store: Store, id: RunId) =>
    (await store.read(stepsOf, id)).map(({ name, state, settledBy }) => `${name} ${state} by ${settledBy ?? 'itself'}`)

  /** A call whose only step nobody knows about. */
  async function inDoubt(store: Store) {
    const [call] = (await called(store, 1)) as [ClaimedCall]
    await store.apply(advanceRun, refOfCall(call), [], 'pay')
    expect((await store.apply(parkCall, refOfCall(call), [doubtful('pay')])).kind).toBe('parked')
    const [action] = await store.read(openDoubts, 9)
    return { call, action: action! }
  }

  test('a step that nobody knows about is an action in doubt, and its run waits for it [actions/no-blind-retry]', async () => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    expect(action).toMatchObject({ runId: call.id, tool: 'pay', state: 'in_doubt', tries: 1, error: 'cut off' })
    expect(await reread(store, call.id)).toMatchObject({ state: 'parked', parkedFor: 'a decision' })
    expect(await states(store, call.id)).toEqual(['pay in_doubt by nobody'])
    const shown = viewWholeRun((await store.read(readWholeRun, call.id))!).actions ?? []
    expect(shown).toMatchObject([{ id: action.id, tool: 'pay', effect: 'write', state: 'in_doubt' }])
    const statement = (await store.read(readStatement, call.id))!
    expect(statement.effects.map(({ action: { id } }) => id)).toEqual([action.id])
    await assertInvariants(store)
  })

  test.each([
    ['first without', [undefined, 'a key', undefined, 'another']],
    ['first with', ['a key', undefined, 'another', undefined]],
  ])('calls with a key and without that are begun at once have their claims each: %s', async (_, keys) => {
    const store = await open()
    await store.apply(openCalls, 'adder')
    const workerId = await addWorker(store)
    const place = () => ({ workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
    const known = aCall()
    await store.apply(callOne, known)
    // With one that turns out to be there already, which is not likely: then PostgreSQL asks for each by itself, too.
    for (const others of [[], [known]]) {
      const calls = keys.map((key) => aCall(key === undefined ? {} : { key: `${key} ${others.length}` }))
      const answers = await Promise.all([
        ...calls.map((call) => store.apply(callHere, call, place(), call.key === undefined ? ['one'] : [])),
        ...others.map((call) => store.apply(callOne, call)),
      ])
      expect(answers.map(({ kind }) => kind)).toEqual([...calls.map(() => 'claimed'), ...others.map(() => 'existing')])
      const held = (await store.read(heldAttempts)).map(({ runId }) => runId)
      expect(calls.filter(({ id }) => !held.includes(id))).toEqual([])
      await assertInvariants(store)
    }
  })

  test.each<[Resolution, string, number]>([
    [{ kind: 'happened', by: 'Grace', result: 7 }, 'pay done by Grace', 0],
    [{ kind: 'did-not-happen', by: 'Grace' }, 'pay failed by Grace', 0],
    [{ kind: 'give-up', by: 'Grace' }, 'pay in_doubt by nobody', 0],
    [{ kind: 'run-again', by: 'Grace' }, 'pay in_doubt by nobody', 0],
  ])('what a person says of it, %o, is in its record, and its run goes on', async (resolution, record, left) => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    expect((await store.apply(resolveDoubt, action.id, resolution)).kind).toBe('resolved')
    expect(await states(store, call.id)).toEqual([record])
    expect((await reread(store, call.id)).state).toBe('queued')
    expect(await store.read(openDoubts, 9)).toHaveLength(left)
    const [again] = (await claimed(store, 1)) as [ClaimedCall]
    expect(again).toMatchObject({ id: call.id, attempt: 2, fence: 2 })
    await assertInvariants(store)
  })

  test('who had begun it and was given up comes back: what it says settles the doubt, once [runs/paid-work-kept]', async () => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    await Promise.all([1, 2].map(() => store.apply(advanceRun, refOfCall(call), [done('pay')])))
    expect(await states(store, call.id)).toEqual(['pay done by its function'])
    expect(await store.read(openDoubts, 9)).toEqual([])
    expect((await reread(store, call.id)).state).toBe('queued')
    expect((await store.apply(resolveDoubt, action.id, { kind: 'did-not-happen', by: 'Grace' })).kind).toBe(
      'not-in-doubt',
    )
    await assertInvariants(store)
  })

  test('that it was done counts also where a person has had it run again, as long as it has not begun [actions/once]', async () => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    await store.apply(resolveDoubt, action.id, { kind: 'run-again', by: 'Grace' })
    await store.apply(advanceRun, refOfCall(call), [done('pay')])
    expect(await states(store, call.id)).toEqual(['pay done by its function'])
    const [again] = (await claimed(store, 1)) as [ClaimedCall]
    expect(await store.apply(startAgain, refOfCall(again), action)).toEqual({ kind: 'settled' })
    expect(await states(store, call.id)).toEqual(['pay done by its function'])
    await assertInvariants(store)
  })

  test('it counts also where a person said that it did not happen, when the run is over and nothing follows from that [runs/paid-work-kept]', async () => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    await store.apply(resolveDoubt, action.id, { kind: 'did-not-happen', by: 'Grace' })
    const [again] = (await claimed(store, 1)) as [ClaimedCall]
    await store.apply(advanceRun, refOfCall(call), [done('pay')])
    expect(await states(store, call.id)).toEqual(['pay failed by Grace'])
    await store.apply(finishCall, refOfCall(again), again, { state: 'succeeded', result: null }, [])
    await store.apply(advanceRun, refOfCall(call), [done('pay')])
    expect(await states(store, call.id)).toEqual(['pay done by its function'])
    expect(await store.read(findAction, action.id)).toMatchObject({ state: 'done', settledBy: 'its function' })
    await assertInvariants(store)
  })

  test('it counts also while the probe is asked, before it is begun again [actions/once]', async () => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    await store.apply(resolveDoubt, action.id, { kind: 'run-again', by: 'Grace' })
    const [again] = (await claimed(store, 1)) as [ClaimedCall]
    const [pay] = await store.read(stepsOf, call.id)
    const ports = { store, clock: systemClock, warn: () => {}, runId: call.id, signal: AbortSignal.timeout(60_000) }
    const probe = async () => {
      await store.apply(advanceRun, refOfCall(call), [done('pay')])
      return { outcome: 'unknown' } as const
    }
    const judged = await judgeDoubted({ ...ports, mayNotGoOn: () => false }, refOfCall(again), pay!, { probe })
    expect(judged).toEqual({ kind: 'done', result: 'pay' })
    expect(await states(store, call.id)).toEqual(['pay done by its function'])
    await assertInvariants(store)
  })

  test('a run that is stopped when it has been begun again, and before it is done, leaves the doubt [actions/no-blind-retry]', async () => {
    const store = await open()
    const { call, action } = await inDoubt(store)
    await store.apply(resolveDoubt, action.id, { kind: 'run-again', by: 'Grace' })
    const [again] = (await claimed(store, 1)) as [ClaimedCall]
    const stop = new Stop()
    const apply: Store['apply'] = async (change, ...args) => {
      const answer = await store.apply(change, ...args)
      if ((change as unknown) === startAgain) stop.tell('cancelled')
      return answer
    }
    const stopping = Object.assign(Object.create(store) as Store, { apply, read: store.read.bind(store) })
    const executor = { store: stopping, clock: systemClock, warn: () => {} } as unknown as Executor
    const known = await store.read(stepsOf, call.id)
    const run = new RecordedRun(executor, again, stop, { known }, { agent: {} as never, random })
    void run.step('pay', () => expect.unreachable('it is not done'))
    expect(await run.halted).toEqual({ kind: 'stopped', why: 'cancel-requested' })
    await store.apply(advanceRun, refOfCall(again), run.takeAll())
    expect(await states(store, call.id)).toEqual(['pay in_doubt by nobody'])
    expect(await store.read(openDoubts, 9)).toMatchObject([{ id: action.id, tries: 2 }])
    await assertInvariants(store)
  })

  test('a run that is out of time while the probe of a step is asked does not begin that again [control/stop-means-stopped]', async () => {
    const store = await open()
    const [call] = (await called(store, 1)) as [ClaimedCall]
    await store.apply(advanceRun, refOfCall(call), [], 'pay')
    const stop = new Stop()
    const executor = { store, clock: systemClock, warn: () => {} } as unknown as Executor
    const known = await store.read(stepsOf, call.id)
    const run = new RecordedRun(executor, call, stop, { known }, { agent: {} as never, random })
    const probe = () => {
      stop.tell('timeout')
      return { outcome: 'not_done' } as const
    }
    let performed = 0
    const paid = run.step('pay', () => (performed += 1), { probe })
    expect(await Promise.race([run.halted, paid])).toEqual({ kind: 'stopped', why: 'timeout' })
    expect({ performed, left: run.takeAll() }).toMatchObject({
      performed: 0,
      left: [{ name: 'pay', state: 'in_doubt' }],
    })
  })

  test('a run that ends while a write of it is under way leaves a doubt, whoever ends it [actions/no-blind-retry]', async () => {
    const store = await open()
    const [call] = (await called(store, 1)) as [ClaimedCall]
    await store.apply(advanceRun, refOfCall(call), [], 'pay')
    await store.apply(finishRun, refOfCall(call), { state: 'failed', code: 'lost', error: 'its machine burnt' })
    expect(await states(store, call.id)).toEqual(['pay in_doubt by nobody'])
    expect(await store.read(openDoubts, 9)).toHaveLength(1)
    await assertInvariants(store)
  })

  test('a call whose function has a limit takes a slot, and gives it back with its end', async () => {
    const store = await open()
    await store.apply(openCalls, 'adder')
    await store.apply(
      callAll,
      many(3, () => aCall()),
    )
    const [limits, workerId] = [{ perAgent: { adder: 2 } }, await addWorker(store)]
    const claim = () =>
      store.apply(claimCalls, {
        workerId,
        leaseMs: LEASE_MS,
        agents: ['adder'],
        attempts: many(3, () => newAttemptId(random)),
        limits,
      })
    const calls = await claim()
    expect(calls.map(({ slots }) => slots)).toEqual([['agent:adder'], ['agent:adder']])
    expect(await claim()).toEqual([])
    await store.apply(finishCall, refOfCall(calls[0]!), calls[0]!, { state: 'succeeded' }, [])
    expect(await claim()).toHaveLength(1)
    await assertInvariants(store)
  })
})
