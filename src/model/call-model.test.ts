import { describe, expect, onTestFinished, test } from 'vitest'

import { Callers, modelOf, replyOf, side, turn } from '../../test/model/callers.ts'
import { LIMITS } from '../base/limits.ts'
import { openSqliteStore } from '../store/sqlite/store.ts'
import { errorOfResponse, ModelError } from './model-error.ts'
import { blockedQuotas, blockQuota } from './quota.ts'

async function setUp() {
  const callers = new Callers()
  const store = await openSqliteStore({ path: ':memory:', clock: callers.clock })
  onTestFinished(() => store.close())
  return { callers, store, clock: callers.clock }
}

const answered = (status: number, headers: Record<string, string> = {}) =>
  errorOfResponse({ status, headers, message: 'no' }, 0)

/** Fails with these, in order, then replies. */
const failing = (errors: readonly Error[]) => (asked: number) =>
  asked <= errors.length ? Promise.reject(errors[asked - 1]!) : Promise.resolve(replyOf('yes', 10))

const gaps = (instants: readonly number[]) => instants.slice(1).map((at, index) => at - instants[index]!)

describe.each([turn, side])('a call for a $purpose', (request) => {
  test('succeeds after two 429s [R5]', async () => {
    const { callers, store, clock } = await setUp()
    const { model, asked } = modelOf(clock, failing([answered(429), answered(429)]))
    const outcome = await callers.ended(callers.call(store, model, request))
    expect(outcome).toMatchObject({ kind: 'replied', reply: { text: 'yes' } })
    expect(asked).toHaveLength(3)
  })

  test('is tried again three times, after 1, 2 and 4 s with at most a quarter on top, then fails [R5] [R6]', async () => {
    const { callers, store, clock } = await setUp()
    const { model, asked } = modelOf(clock, failing(Array.from({ length: 9 }, () => answered(500))))
    const outcome = await callers.ended(callers.call(store, model, request))
    expect(outcome).toMatchObject({ kind: 'failed', code: 'model', error: { status: 500 } })
    expect(gaps(asked)).toEqual([1_249, 2_499, 4_999])
  })

  test('never comes back before it was told to, nor before its own wait is over [R6]', async () => {
    const { callers, store, clock } = await setUp()
    const told = [answered(503, { 'retry-after': '9' }), answered(429, { 'retry-after': '1' })]
    const { model, asked } = modelOf(clock, failing(told))
    await callers.ended(callers.call(store, model, request))
    expect(gaps(asked)).toEqual([9_249, 2_499])
  })
})

test('a wrong key, a wrong request and a refusal are told at once, with their codes', async () => {
  const { callers, store, clock } = await setUp()
  const errors = [answered(401), answered(400), new ModelError('model/bad-request', 'never')]
  const { model, asked } = modelOf(clock, failing(errors))
  const outcomes = []
  for (const _ of errors) outcomes.push(await callers.call(store, model))
  expect(outcomes).toMatchObject([
    { kind: 'failed', code: 'auth', error: { code: 'model/auth' } },
    { kind: 'failed', code: 'model', error: { code: 'model/bad-request' } },
    { kind: 'failed', code: 'model', error: { code: 'model/bad-request' } },
  ])
  expect(asked).toHaveLength(3)
  expect(callers.waits).toEqual([])
})

test('a wait of 60 s is waited out, a longer one parks until what was told [R6] [model/patient]', async () => {
  const { callers, store, clock } = await setUp()
  const { model, asked } = modelOf(
    clock,
    failing([answered(429, { 'retry-after': '60' }), answered(429, { 'retry-after': '61' })]),
  )
  const outcome = await callers.ended(callers.call(store, model))
  expect(gaps(asked)).toEqual([60_249])
  expect(outcome).toMatchObject({ kind: 'park', until: asked[1]! + 61_000, reason: expect.stringContaining('429') })
  expect(await store.read(blockedQuotas)).toMatchObject([{ quota: 'test', blockedUntil: asked[1]! + 61_000 }])
  expect(await callers.call(store, model)).toMatchObject({ kind: 'park', until: asked[1]! + 61_000 })
  expect(asked).toHaveLength(2)
  clock.advance(61_000 + LIMITS.quotaRecoveryMs)
  expect(await callers.call(store, model)).toMatchObject({ kind: 'replied' })
  expect(await store.read(blockedQuotas)).toEqual([])
})

test('what all tries cost is kept, of failed and of cancelled ones too [T8]', async () => {
  const { callers, store, clock } = await setUp()
  const usage = { inputTokens: 7, outputTokens: 2, costMicrousd: 5 }
  const partial = new ModelError('model/connection', 'cut', { usage })
  const { model } = modelOf(clock, failing([partial, partial]))
  expect(await callers.ended(callers.call(store, model))).toMatchObject({
    kind: 'replied',
    spent: { inputTokens: 24, outputTokens: 14, costMicrousd: 20 },
  })
  const { model: refusing } = modelOf(clock, failing([new ModelError('model/bad-request', 'no', { usage })]))
  expect(await callers.call(store, refusing)).toMatchObject({ kind: 'failed', spent: usage })
  const cancel = new AbortController()
  const lastWords = modelOf(clock, (_asked, signal) => {
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(partial)))
  })
  const cancelled = callers.call(store, lastWords.model, turn, { signal: cancel.signal })
  await callers.allWait()
  cancel.abort()
  expect(await cancelled).toEqual({ kind: 'cancelled', spent: usage })
})

describe('cancel', () => {
  test('ends a wait for another try at once [R6]', async () => {
    const { callers, store, clock } = await setUp()
    const { model, asked } = modelOf(clock, failing([answered(429, { 'retry-after': '50' })]))
    const cancel = new AbortController()
    const call = callers.call(store, model, turn, { signal: cancel.signal })
    await callers.allWait()
    cancel.abort()
    expect(await call).toMatchObject({ kind: 'cancelled' })
    expect(asked).toEqual([clock.now()])
  })

  test('ends a wait for the quota at once, and nothing is asked [R6]', async () => {
    const { callers, store, clock } = await setUp()
    const { model, asked } = modelOf(clock, failing([]))
    await store.apply(blockQuota, 'test', 50_000, 'x')
    const cancel = new AbortController()
    const call = callers.call(store, model, turn, { signal: cancel.signal })
    await callers.allWait()
    cancel.abort()
    expect(await call).toMatchObject({ kind: 'cancelled' })
    expect(asked).toEqual([])
  })

  test('leaves a model behind that does not listen, and what it says later is not heard [R6]', async () => {
    const { callers, store, clock } = await setUp()
    const heard: string[] = []
    let speak: (delta: string) => void = () => {}
    const cancel = new AbortController()
    const deaf = {
      ...modelOf(clock, failing([])).model,
      generate: (_request: unknown, { onText }: { onText?: (delta: string) => void }) => {
        speak = (delta) => onText?.(delta)
        return new Promise<never>(() => {})
      },
    }
    const call = callers.call(store, deaf, turn, { signal: cancel.signal, onText: (delta) => heard.push(delta) })
    await callers.allWait()
    speak('before')
    cancel.abort()
    speak('after')
    clock.advance(LIMITS.modelLastWordsMs)
    expect(await call).toMatchObject({ kind: 'cancelled' })
    expect(heard).toEqual(['before'])
  })

  test('before it began: nothing is asked', async () => {
    const { callers, store, clock } = await setUp()
    const { model, asked } = modelOf(clock, failing([]))
    expect(await callers.call(store, model, turn, { signal: AbortSignal.abort() })).toMatchObject({ kind: 'cancelled' })
    expect(asked).toEqual([])
  })
})

test('a try that hangs is given up after its time and tried again', async () => {
  const { callers, store, clock } = await setUp()
  const { model, asked } = modelOf(clock, (count) =>
    count === 1 ? new Promise(() => {}) : Promise.resolve(replyOf('yes')),
  )
  const call = callers.call(store, model)
  await callers.allWait()
  clock.advance(LIMITS.modelTryMs)
  expect(await callers.ended(call)).toMatchObject({ kind: 'replied' })
  expect(asked).toHaveLength(2)
  expect(callers.warnings).toEqual([expect.stringContaining('no complete answer within 10 minutes')])
})

test('all waits of one call have a bound: then it parks, though each was short [R6]', async () => {
  const { callers, store, clock } = await setUp()
  const { model, asked } = modelOf(clock, failing([]))
  await store.apply(blockQuota, 'test', 50_000, 'x')
  const call = callers.call(store, model)
  const blockAgain = async () => {
    for (let round = 0; round < 9; round++) {
      await callers.allWait()
      clock.advance(49_999)
      await store.apply(blockQuota, 'test', 50_000, 'x')
      clock.advance(1)
    }
  }
  const [outcome] = await Promise.all([call, blockAgain()])
  expect(outcome).toMatchObject({ kind: 'park', reason: 'x' })
  expect(callers.waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(LIMITS.modelWaitsMs)
  expect(asked).toEqual([])
})

test('what was streamed of a failed try is void, and the caller is told', async () => {
  const { callers, store, clock } = await setUp()
  const { model } = modelOf(clock, failing([answered(529)]))
  const told: unknown[] = []
  await callers.ended(callers.call(store, model, turn, { onRetry: (failed) => told.push(failed) }))
  expect(told).toMatchObject([{ error: { code: 'model/overloaded' }, waitMs: 1_249 }])
})

test('an unblocked call costs the store one read and no write', async () => {
  const { callers, store, clock } = await setUp()
  const used: string[] = []
  const counting = {
    ...store,
    read: ((...args: Parameters<typeof store.read>) => (used.push('read'), store.read(...args))) as typeof store.read,
    apply: ((...args: Parameters<typeof store.apply>) => (
      used.push('apply'),
      store.apply(...args)
    )) as typeof store.apply,
  }
  await callers.call(counting, modelOf(clock, failing([])).model)
  expect(used).toEqual(['read'])
})

test('a database that fails does not cost a reply that is paid', async () => {
  const { callers, clock } = await setUp()
  const fails = () => Promise.reject(new Error('disk'))
  const store = { ...(await setUp()).store, read: fails, apply: fails }
  const { model } = modelOf(clock, failing([answered(429, { 'retry-after': '5' })]))
  expect(await callers.ended(callers.call(store, model))).toMatchObject({ kind: 'replied' })
  expect(callers.warnings.filter((text) => text.includes('disk'))).toHaveLength(3)
})
