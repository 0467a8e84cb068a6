import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'

import { newAttemptId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { renewLeases } from '../../src/runs/attempt.ts'
import { callHere, callOne, claimCalls, openCalls, refOfCall } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishCall } from '../../src/runs/finish-call.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { findRun } from '../../src/runs/run.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import { advanceRun, restartStep, stepsOf, stepsOfAll } from '../../src/runs/step.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { Lane } from '../../src/store/postgres/lane.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run } from '../../src/store/transition.ts'
import type { Change, Transition } from '../../src/store/transition.ts'
import { increment } from '../support/counters.ts'
import { LEASE_MS, addWorker, running, submission, submitted } from '../support/world.ts'
import { addOne, freshSchema, openedStore, proxyBefore } from './support.ts'

test('what is sent together is one round trip on the wire', async () => {
  const url = await freshSchema()
  const proxy = await proxyBefore(url)
  const client = new pg.Client({ connectionString: proxy.through(url).replace(/\?.*/, ''), pipeline: true })
  await client.connect()
  onTestFinished(() => client.end())
  const lane = new Lane(client as unknown as pg.PoolClient, random)
  // Long enough for everything that was sent together to be under way before the first answer is.
  proxy.delayMs = 20
  const before = proxy.roundTrips
  const selects = Array.from({ length: 20 }, (_, at) => ({ text: 'select $1::int as number', values: [at] }))
  const answers = await lane.send([{ text: 'begin' }, ...selects, { text: 'commit' }])
  expect(answers).toHaveLength(22)
  expect(proxy.roundTrips - before).toBe(1)
})

/** How many statements a transition asked for, and how often the engine waited for an answer. */
async function costOf<Args extends readonly unknown[], T>(store: Store, change: Change<Args, T>, ...args: Args) {
  let statements = 0
  function* counting(): Transition<T> {
    const transition = typeof change === 'function' ? change(...args) : change.single(...args)[Symbol.iterator]()
    let step = transition.next()
    while (step.done !== true) {
      if (!step.value.deferred) statements += 1
      step = transition.next(yield step.value)
    }
    return step.value
  }
  const send = vi.spyOn(Lane.prototype, 'send')
  try {
    const answer = await (typeof change === 'function' ? store.apply(counting) : store.apply(change, ...args))
    return { answer, statements, roundTrips: send.mock.calls.length }
  } finally {
    send.mockRestore()
  }
}

test('a declared single costs one round trip, alone or with fifty others', async () => {
  const store = await openedStore(await freshSchema())
  const workerId = await addWorker(store)
  expect((await costOf(store, renewLeases, workerId, LEASE_MS)).roundTrips).toBe(1)
  const send = vi.spyOn(Lane.prototype, 'send')
  await Promise.all(Array.from({ length: 50 }, () => store.apply(renewLeases, workerId, LEASE_MS)))
  expect(send.mock.calls.length).toBe(1)
  send.mockRestore()
})

test('a transition of n statements costs n and one round trips at most', async () => {
  const store = await openedStore(await freshSchema())
  const workerId = await addWorker(store)
  const claimed = await running(store)
  const other = await submitted(store)
  const attempt = { id: newAttemptId(random), mark: random.hex(16) }
  const costs = [
    await costOf(store, increment, 'n'),
    await costOf(store, submitRun, submission({ key: 'k' })),
    await costOf(store, submitRun, submission({ key: 'k' })),
    await costOf(store, claimRun, { workerId, leaseMs: LEASE_MS, limits: { total: 5 }, attempt }),
    await costOf(store, finishRun, claimed.ref, { state: 'succeeded' as const }),
    await costOf(store, cancelRun, other.id, { by: 'tester' }),
    await costOf(store, cancelRun, other.id, { by: 'tester' }),
  ]
  for (const { statements, roundTrips } of costs) expect(roundTrips).toBeLessThanOrEqual(statements + 1)
  expect(costs.map(({ statements }) => statements).every((count) => count > 0)).toBe(true)
  console.log(
    `round trips: ${costs.map(({ statements, roundTrips }) => `${statements}+${roundTrips - statements}`).join(', ')}`,
  )
})

test('a transition whose statements are all likely costs one round trip, its events and its commit included', async () => {
  const store = await openedStore(await freshSchema())
  await store.apply(increment, 'n')
  expect(await costOf(store, addOne)).toMatchObject({ answer: 1, roundTrips: 1 })
})

test('a step costs one round trip, and so does its end with that of its run', async () => {
  const store = await openedStore(await freshSchema())
  await store.apply(openCalls, 'adder')
  const call = { id: newRunId(random), agent: 'adder', input: '1' }
  expect(await costOf(store, callOne, call)).toMatchObject({ answer: { kind: 'called' }, roundTrips: 1 })
  const claimant = { workerId: await addWorker(store), leaseMs: LEASE_MS, attempts: [newAttemptId(random)] }
  const [claimed] = await store.apply(claimCalls, { ...claimant, agents: ['adder'] })
  const ref = refOfCall(claimed!)
  const done = { name: 's', effect: 'write', tries: 1, state: 'done', result: '1', error: null, by: null } as const
  expect((await costOf(store, advanceRun, ref, [], 's')).roundTrips).toBe(1)
  expect((await costOf(store, advanceRun, ref, [done], 't')).roundTrips).toBe(1)
  const ended = await costOf(store, finishCall, ref, claimed!, { state: 'succeeded' }, [{ ...done, name: 't' }])
  expect(ended).toMatchObject({ answer: { kind: 'finished' }, roundTrips: 1 })
})

test.each(['read', 'write'] as const)('a call that ends with a %s costs one round trip', async (effect) => {
  const store = await openedStore(await freshSchema())
  await store.apply(openCalls, 'adder')
  const place = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
  const call = { id: newRunId(random), agent: 'adder', input: '1' }
  const here = await store.apply(callHere, call, place, effect === 'write' ? ['s'] : [])
  if (here.kind !== 'claimed') throw new Error(here.kind)
  const outcome = { name: 's', effect, tries: 1, state: 'done', result: '1', error: null, by: null } as const
  const ended = await costOf(store, finishCall, refOfCall(here.call), here.call, { state: 'succeeded' }, [outcome])
  expect(ended).toMatchObject({ answer: { kind: 'finished' }, roundTrips: 1 })
  expect((await store.read(stepsOf, call.id)).map(({ state }) => state)).toEqual(['done'])
})

test('a call that is carried out where it is stored costs one round trip, the intents of its first steps included', async () => {
  const store = await openedStore(await freshSchema())
  await store.apply(openCalls, 'adder')
  const place = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
  const call = { id: newRunId(random), agent: 'adder', input: '1' }
  const { answer, roundTrips } = await costOf(store, callHere, call, place, ['s', 't'])
  const { seq } = (await store.read(findRun, call.id))!
  expect(answer).toMatchObject({ kind: 'claimed', call: { id: call.id, seq } })
  expect((await store.read(stepsOf, call.id)).map(({ name, state }) => `${name} ${state}`)).toEqual([
    's started',
    't started',
  ])
  expect(roundTrips).toBe(1)
})

test('what is likely and is there already is found out by another try, and those that share the commit are stored', async () => {
  const store = await openedStore(await freshSchema())
  await store.apply(openCalls, 'adder')
  const workerId = await addWorker(store)
  const place = () => ({ workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) })
  const [known, other] = [newRunId(random), newRunId(random)].map((id) => ({ id, agent: 'adder', input: '1' }))
  await store.apply(callHere, known!, place(), ['s'])
  const commits = vi.spyOn(Lane.prototype, 'send')
  const calls = [known!, other!].map((call) => store.apply(callHere, call, place(), ['s']))
  expect(await Promise.all(calls)).toMatchObject([{ kind: 'existing' }, { kind: 'claimed', call: { id: other!.id } }])
  // Together at first, hopefully; then together again, waiting for each answer.
  const lanes = new Set(commits.mock.contexts)
  commits.mockRestore()
  expect(lanes.size).toBe(2)
  expect(await store.read(stepsOf, known!.id)).toHaveLength(1)
})

test('a transition that asks for nothing costs nothing', async () => {
  const store = await openedStore(await freshSchema())
  // eslint-disable-next-line require-yield
  function* nothing(): Transition<number> {
    return 7
  }
  expect(await costOf(store, nothing)).toEqual({ answer: 7, statements: 0, roundTrips: 0 })
})

test('a hundred that come together cost as much as the longest of them', async () => {
  const store = await openedStore(await freshSchema())
  function* touch(): Transition<number> {
    return yield* run(sql`update capacity set used = used where scope = 'nobody'`)
  }
  const send = vi.spyOn(Lane.prototype, 'send')
  const work = Array.from({ length: 100 }, (_, at) =>
    at % 2 === 0 ? store.apply(increment, `n${at}`) : store.apply(touch),
  )
  await Promise.all(work)
  expect(send.mock.calls.length).toBe(3)
  send.mockRestore()
})

test('what a lost worker held is taken over, and its cut-off steps begun again, by a few statements for all of them', async () => {
  const store = await openedStore(await freshSchema())
  await store.apply(openCalls, 'adder')
  const [lost, taker] = [await addWorker(store), await addWorker(store)]
  const calls = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const place = { workerId: lost, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
      const here = await store.apply(callHere, { id: newRunId(random), agent: 'adder', input: '1' }, place, ['s'])
      if (here.kind !== 'claimed') throw new Error(here.kind)
      return here.call
    }),
  )
  const send = vi.spyOn(Lane.prototype, 'send')
  onTestFinished(() => send.mockRestore())
  const sent = () => send.mock.calls.reduce((sum, [requests]) => sum + requests.length, 0)
  const claims = await Promise.all(
    calls.map((call) => {
      const attemptId = newAttemptId(random)
      const by = { workerId: taker, leaseMs: LEASE_MS, attemptId, mark: attemptId }
      return store.apply(takeOverRun, { ...refOfCall(call), mark: call.attemptId }, 'owner-dead', by)
    }),
  )
  expect(claims.map((claim) => claim!.run.fence)).toEqual(calls.map(() => 2))
  expect(new Set(claims.map((claim) => claim!.attempt.runId))).toEqual(new Set(calls.map(({ id }) => id)))
  // Begin, the runs, the old attempts, the new ones, the end with its events, commit.
  expect(sent()).toBe(6)
  const restarted = await Promise.all(
    claims.map((claim) => {
      const { run: taken, attempt } = claim!
      const ref = { id: attempt.id, runId: taken.id, fence: taken.fence, runSeq: taken.seq }
      return store.apply(restartStep, ref, { name: 's', tries: 1 })
    }),
  )
  expect(restarted).toEqual(calls.map(() => ({ kind: 'restarted' })))
  expect(sent()).toBeLessThanOrEqual(10)
  const steps = await store.read(
    stepsOfAll,
    calls.map(({ id }) => id),
  )
  expect(steps.map(({ tries }) => tries)).toEqual(calls.map(() => 2))
})
