import { describe, expect, test } from 'vitest'

import { LIMITS } from '../../src/base/limits.ts'
import { errorOfResponse } from '../../src/model/model-error.ts'
import { blockedQuotas, blockQuota, quotaSucceeded, waitFor } from '../../src/model/quota.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { engines } from '../support/engines.ts'
import { Callers, modelOf, replyOf } from './callers.ts'

const { quotaSpacingMs, quotaRecoveryMs } = LIMITS

describe.each(engines)('a quota on $name', (engine) => {
  async function open(clock = new FakeClock()) {
    const database = await engine.database()
    const store = await database.open({ clock })
    return { database, store, clock }
  }

  test('that nobody blocked lets everybody go and stores nothing', async () => {
    const { store } = await open()
    expect(await store.apply(waitFor, 'a')).toEqual({ kind: 'go' })
    expect(await store.read(blockedQuotas)).toEqual([])
  })

  test('that is blocked makes everybody wait until the same instant, others on other accounts not [model/patient]', async () => {
    const { store, clock } = await open()
    const until = clock.now() + 5_000
    expect(await store.apply(blockQuota, 'a', 5_000, 'slow down')).toEqual({ blockedUntil: until })
    clock.advance(1_000)
    expect(await store.apply(waitFor, 'a')).toEqual({ kind: 'wait', waitMs: 4_000, until, reason: 'slow down' })
    expect(await store.apply(waitFor, 'a')).toMatchObject({ waitMs: 4_000 })
    expect(await store.apply(waitFor, 'b')).toEqual({ kind: 'go' })
  })

  test('is blocked for longer, never for shorter', async () => {
    const { store, clock } = await open()
    const until = clock.now() + 5_000
    await store.apply(blockQuota, 'a', 5_000, 'long')
    expect(await store.apply(blockQuota, 'a', 1_000, 'short')).toEqual({ blockedUntil: until })
    expect(await store.read(blockedQuotas)).toMatchObject([{ blockedUntil: until, reason: 'long' }])
    expect(await store.apply(blockQuota, 'a', 9_000, 'longer')).toEqual({ blockedUntil: until + 4_000 })
    expect(await store.read(blockedQuotas)).toMatchObject([{ blockedUntil: until + 4_000, reason: 'longer' }])
  })

  test('of two stores that block it at once the longer block stands', async () => {
    const { database, store, clock } = await open()
    const stores = [store, await database.open({ clock })]
    const lengths = Array.from({ length: 20 }, (_, index) => 1_000 * (((index * 7) % 20) + 1))
    await Promise.all(lengths.map((ms, index) => stores[index % 2]!.apply(blockQuota, 'a', ms, `${ms}`)))
    expect(await store.read(blockedQuotas)).toMatchObject([{ blockedUntil: clock.now() + 20_000, reason: '20000' }])
  })

  test('whose block is over lets the first go at once and the others one by one [model/patient]', async () => {
    const { database, store, clock } = await open()
    const other = await database.open({ clock })
    await store.apply(blockQuota, 'a', 5_000, 'x')
    clock.advance(5_000)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? store : other).apply(waitFor, 'a')),
    )
    const waits = answers.map((answer) => (answer.kind === 'wait' ? answer.waitMs : 0)).toSorted((a, b) => a - b)
    expect(waits).toEqual(Array.from({ length: 10 }, (_, index) => index * quotaSpacingMs))
  })

  test('keeps a slot for who waited for it, and a longer block makes it void', async () => {
    const { store, clock } = await open()
    await store.apply(blockQuota, 'a', 5_000, 'x')
    clock.advance(5_000)
    await store.apply(waitFor, 'a')
    const second = await store.apply(waitFor, 'a')
    expect(await store.apply(waitFor, 'a', second.slot)).toMatchObject({ kind: 'wait', waitMs: quotaSpacingMs })
    clock.advance(quotaSpacingMs)
    expect(await store.apply(waitFor, 'a', second.slot)).toEqual({ kind: 'go', slot: second.slot })
    await store.apply(blockQuota, 'a', 3_000, 'again')
    expect(await store.apply(waitFor, 'a', second.slot)).toMatchObject({ kind: 'wait', waitMs: 3_000, reason: 'again' })
    clock.advance(3_000)
    expect(await store.apply(waitFor, 'a', second.slot)).toMatchObject({ kind: 'go', slot: { at: clock.now() } })
    expect(await store.apply(waitFor, 'a', second.slot)).toMatchObject({ kind: 'wait', waitMs: quotaSpacingMs })
  })

  test('that is blocked again for a short while gives no slot twice', async () => {
    const { store, clock } = await open()
    await store.apply(blockQuota, 'a', 5_000, 'x')
    clock.advance(5_000)
    for (let slot = 0; slot < 10; slot++) await store.apply(waitFor, 'a')
    await store.apply(blockQuota, 'a', 1_000, 'again')
    clock.advance(1_000)
    expect(await store.apply(waitFor, 'a')).toMatchObject({ kind: 'wait', waitMs: 10 * quotaSpacingMs - 1_000 })
  })

  test('is cleared by a call that came after the block, not by one from before it', async () => {
    const { store, clock } = await open()
    await store.apply(blockQuota, 'a', 5_000, 'x')
    clock.advance(5_000)
    const probe = await store.apply(waitFor, 'a')
    await store.apply(blockQuota, 'a', 5_000, 'again')
    expect(await store.apply(quotaSucceeded, 'a', probe.slot!)).toBe(0)
    clock.advance(5_000 + quotaRecoveryMs)
    const next = await store.apply(waitFor, 'a')
    expect(await store.apply(quotaSucceeded, 'a', next.slot!)).toBe(1)
    expect(await store.apply(waitFor, 'a')).toEqual({ kind: 'go' })
  })

  test('goes on in single file for a while after the first success: others wake later [model/patient]', async () => {
    const { store, clock } = await open()
    await store.apply(blockQuota, 'a', 5_000, 'x')
    clock.advance(5_000)
    const probe = await store.apply(waitFor, 'a')
    expect(await store.apply(quotaSucceeded, 'a', probe.slot!)).toBe(0)
    clock.advance(quotaSpacingMs)
    const late = [await store.apply(waitFor, 'a'), await store.apply(waitFor, 'a'), await store.apply(waitFor, 'a')]
    expect(late.map((answer) => (answer.kind === 'wait' ? answer.waitMs : 0))).toEqual([0, 500, 1_000])
  })

  test('is the same after everybody was restarted [model/patient]', async () => {
    const { database, store, clock } = await open()
    await store.apply(blockQuota, 'a', 3_600_000, 'an hour')
    await store.close()
    clock.advance(60_000)
    const reopened = await database.open({ clock })
    expect(await reopened.apply(waitFor, 'a')).toMatchObject({ kind: 'wait', waitMs: 3_540_000, reason: 'an hour' })
  })
})

describe.each(engines)('calls on one account, from two processes on $name', (engine) => {
  const COUNT = 12

  async function setUp() {
    const callers = new Callers()
    const database = await engine.database()
    const stores = [await database.open({ clock: callers.clock })]
    stores.push(await database.open({ clock: callers.clock }))
    return { callers, clock: callers.clock, database, stores }
  }
  const refused = (retryAfter: string) =>
    errorOfResponse({ status: 429, headers: { 'retry-after': retryAfter }, message: 'slow down' }, 0)

  test('wait together, then follow a probe one by one [model/patient]', async () => {
    const { callers, clock, stores } = await setUp()
    const { model, asked } = modelOf(clock, (count) =>
      count === 1 ? Promise.reject(refused('30')) : Promise.resolve(replyOf('yes')),
    )
    const first = callers.call(stores[0]!, model)
    await callers.allWait()
    const until = clock.now() + 30_000
    const others = Array.from({ length: COUNT - 1 }, (_, index) => callers.call(stores[index % 2]!, model))
    const outcomes = await callers.ended(Promise.all([first, ...others]))
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array.from({ length: COUNT }, () => 'replied'))
    const [, ...after] = asked
    expect(after[0]).toBe(until)
    expect(after).toHaveLength(COUNT)
    expectSpread(after)
  })

  test('send one request for each time that they are refused, not one each [model/patient]', async () => {
    const { callers, clock, stores } = await setUp()
    const { model, asked } = modelOf(clock, (count) =>
      count <= 3 ? Promise.reject(refused('20')) : Promise.resolve(replyOf('yes')),
    )
    const first = callers.call(stores[0]!, model)
    await callers.allWait()
    const others = Array.from({ length: COUNT - 1 }, (_, index) => callers.call(stores[index % 2]!, model))
    await callers.ended(Promise.all([first, ...others]))
    expect(asked).toHaveLength(COUNT + 3)
    expect(asked[1]! - asked[0]!).toBeGreaterThanOrEqual(20_000)
    expect(asked[2]! - asked[1]!).toBeGreaterThanOrEqual(20_000)
    expect(asked[3]! - asked[2]!).toBeGreaterThanOrEqual(20_000)
    expectSpread(asked.slice(3))
  })

  test('wait on after a restart until the instant that was told before it [R6] [model/patient]', async () => {
    const { callers, clock, database, stores } = await setUp()
    const { model, asked } = modelOf(clock, (count) =>
      count === 1 ? Promise.reject(refused('45')) : Promise.resolve(replyOf('yes')),
    )
    const cancel = new AbortController()
    const cut = callers.call(stores[0]!, model, undefined, { signal: cancel.signal })
    await callers.allWait()
    const until = clock.now() + 45_000
    cancel.abort()
    expect(await cut).toMatchObject({ kind: 'cancelled' })
    for (const store of stores) await store.close()
    clock.advance(10_000)
    const reopened = await database.open({ clock })
    const outcomes = await callers.ended(Promise.all([callers.call(reopened, model), callers.call(reopened, model)]))
    expect(outcomes).toMatchObject([{ kind: 'replied' }, { kind: 'replied' }])
    expect(asked.slice(1)).toEqual([until, until + quotaSpacingMs])
  })
})

/** No two requests closer to each other than they should be. */
function expectSpread(instants: readonly number[]): void {
  const spread = instants.toSorted((a, b) => a - b)
  const closest = Math.min(...spread.slice(1).map((at, index) => at - spread[index]!))
  expect(closest).toBeGreaterThanOrEqual(quotaSpacingMs)
}
