import { describe, expect, onTestFinished, test } from 'vitest'

import type { Clock } from '../../src/base/clock.ts'
import { LIMITS } from '../../src/base/limits.ts'
import type { LanguageModel } from '../../src/loop/ports.ts'
import { openModel } from '../../src/model/providers.ts'
import { blockedQuotas } from '../../src/model/quota.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { Callers, side, turn } from './callers.ts'
import { httpModel } from './http-model.ts'
import * as server from './provider-server.ts'
import type { Behaviour } from './provider-server.ts'

type Open = (url: string, clock: Clock) => Promise<LanguageModel>

// Where the AI SDK's Anthropic provider is installed, it has to behave like our own few lines.
const sdkFolder = process.env['HOLDFAST_AI_SDK'] ?? process.cwd()
const viaSdk: Open = (baseURL, clock) =>
  openModel('anthropic/claude-sonnet-5', sdkFolder, { baseURL, apiKey: 'test', clock })
const hasSdk = await viaSdk('http://127.0.0.1:9/v1', {
  now: () => 0,
  monotonicMs: () => 0,
  after: () => () => {},
}).then(
  () => true,
  () => false,
)

const adapters: readonly { readonly name: string; readonly open: Open; readonly present: boolean }[] = [
  { name: 'a small adapter', open: (url, clock) => Promise.resolve(httpModel(url, clock)), present: true },
  { name: '@ai-sdk/anthropic', open: viaSdk, present: hasSdk },
]

async function setUp(open: Open, behaviours: readonly Behaviour[]) {
  const callers = new Callers()
  const store = await openSqliteStore({ path: ':memory:', clock: callers.clock })
  onTestFinished(() => store.close())
  const provider = await server.providerServer(behaviours)
  const model = await open(provider.url, callers.clock)
  const started = callers.clock.now()
  return { callers, clock: callers.clock, store, provider, model, waited: () => callers.clock.now() - started }
}

const again = (behaviour: Behaviour, times: number) => Array.from({ length: times }, () => behaviour)
const start = Date.UTC(2026, 0, 1)
const paidOnce = { inputTokens: server.INPUT_TOKENS, outputTokens: server.OUTPUT_TOKENS }

for (const { name, open, present } of adapters) {
  describe.skipIf(!present)(`over HTTP, through ${name}`, () => {
    test('an answer is heard as it comes and paid once', async () => {
      const { callers, store, model, provider } = await setUp(open, [server.replies])
      const heard: string[] = []
      const outcome = await callers.call(store, model, turn, { onText: (delta) => heard.push(delta) })
      expect(outcome).toMatchObject({ kind: 'replied', reply: { text: 'hello', finish: 'stop' }, spent: paidOnce })
      expect(heard).toEqual(['hel', 'lo'])
      expect(provider.requests()).toBe(1)
    })

    test('a side call succeeds after two 429s, like any other [R5]', async () => {
      const limited = server.refuses(429, { 'retry-after': '2' })
      const { callers, store, model, provider, waited } = await setUp(open, [limited, limited, server.replies])
      const outcome = await callers.ended(callers.call(store, model, side))
      expect(outcome).toMatchObject({ kind: 'replied', reply: { text: 'hello' } })
      expect(provider.requests()).toBe(3)
      expect(waited()).toBeGreaterThanOrEqual(4_000)
    })

    test.each([
      ['seconds', { 'retry-after': '7' }, 7_000],
      ['an HTTP date', { 'retry-after': new Date(start + 9_000).toUTCString() }, 9_000],
      ['milliseconds', { 'retry-after-ms': '2500' }, 2_500],
      ['nothing', {}, 1_000],
      ['a blank', { 'retry-after': ' ' }, 1_000],
      ['zero', { 'retry-after': '0' }, 1_000],
      ['a negative number', { 'retry-after': '-3' }, 1_000],
      ['garbage', { 'retry-after': 'in a moment' }, 1_000],
      ['a date that is over', { 'retry-after': new Date(start - 9_000).toUTCString() }, 1_000],
    ])('a 429 that says %s is waited out as it says [R6]', async (_form, headers, floorMs) => {
      const { callers, store, model, provider, waited } = await setUp(open, [
        server.refuses(429, headers),
        server.replies,
      ])
      expect(await callers.ended(callers.call(store, model))).toMatchObject({ kind: 'replied' })
      expect(provider.requests()).toBe(2)
      expect(waited()).toBeGreaterThanOrEqual(floorMs)
      expect(waited()).toBeLessThan(floorMs + 300)
      expect(await store.read(blockedQuotas)).toHaveLength(floorMs === 1_000 ? 0 : 1)
    })

    test('a 529 with a long wait parks, and nobody on the account asks before its end [R6] [model/patient]', async () => {
      const overloaded = server.refuses(529, { 'retry-after': '600' })
      const { callers, store, model, provider, clock } = await setUp(open, [overloaded, server.replies])
      const until = start + 600_000
      expect(await callers.call(store, model)).toMatchObject({ kind: 'park', until })
      expect(await callers.call(store, model, side)).toMatchObject({ kind: 'park', until })
      expect(provider.requests()).toBe(1)
      clock.advance(600_000)
      expect(await callers.call(store, model)).toMatchObject({ kind: 'replied' })
    })

    test('a provider that is down gets four requests, not more [R6]', async () => {
      const { callers, store, model, provider, waited } = await setUp(open, [server.refuses(503)])
      const outcome = await callers.ended(callers.call(store, model))
      expect(outcome).toMatchObject({ kind: 'failed', code: 'model', error: { code: 'model/overloaded', status: 503 } })
      expect(provider.requests()).toBe(4)
      expect(waited()).toBeGreaterThanOrEqual(7_000)
    })

    test.each([
      [401, 'auth', 'model/auth'],
      [403, 'auth', 'model/auth'],
      [400, 'model', 'model/bad-request'],
      [404, 'model', 'model/bad-request'],
    ])('a %s gets one request', async (status, code, errorCode) => {
      const { callers, store, model, provider } = await setUp(open, [server.refuses(status)])
      expect(await callers.call(store, model)).toMatchObject({ kind: 'failed', code, error: { code: errorCode } })
      expect(provider.requests()).toBe(1)
    })

    test.each([
      ['is cut', server.cutsTheConnection],
      ['ends too early', server.endsTooEarly],
      ['turns into nonsense', server.talksNonsense],
      ['breaks off with an error', server.breaksOffOverloaded],
    ])('an answer that %s is asked for again, and what it cost is kept [T8]', async (_how, breaks) => {
      const { callers, store, model, provider } = await setUp(open, [breaks, server.replies])
      const retries: unknown[] = []
      const outcome = await callers.ended(
        callers.call(store, model, turn, { onRetry: ({ error }) => retries.push((error as { code?: string }).code) }),
      )
      expect(outcome).toMatchObject({ kind: 'replied', reply: { text: 'hello' } })
      expect(outcome.spent.inputTokens).toBe(2 * server.INPUT_TOKENS)
      expect([provider.requests(), retries.length]).toEqual([2, 1])
    })

    test('an answer that is cut each time fails with all that it cost [T8]', async () => {
      const { callers, store, model, provider } = await setUp(open, again(server.cutsTheConnection, 4))
      const outcome = await callers.ended(callers.call(store, model))
      expect(outcome).toMatchObject({ kind: 'failed', code: 'model', error: { code: 'model/connection' } })
      expect(outcome.spent.inputTokens).toBe(4 * server.INPUT_TOKENS)
      expect(provider.requests()).toBe(4)
    })

    test('an answer that drips in byte by byte is complete', async () => {
      const { callers, store, model } = await setUp(open, [server.drips])
      expect(await callers.call(store, model)).toMatchObject({ kind: 'replied', reply: { text: 'hello' } })
    })

    test('cancel ends an answer that hangs at once, closes its connection and keeps its cost [R6] [T8]', async () => {
      const { callers, store, model, provider, waited } = await setUp(open, [server.hangsInTheMiddle])
      const cancel = new AbortController()
      const call = callers.call(store, model, turn, { signal: cancel.signal, onText: () => cancel.abort() })
      const outcome = await call
      expect(outcome).toMatchObject({ kind: 'cancelled', spent: { inputTokens: server.INPUT_TOKENS } })
      await expect.poll(provider.abandoned).toBe(1)
      expect([provider.requests(), waited()]).toEqual([1, 0])
    })

    test('cancel ends the wait for headers, and the wait for another try, at once [R6]', async () => {
      const silent = await setUp(open, [server.neverAnswers])
      const limited = await setUp(open, [server.refuses(429, { 'retry-after': '50' })])
      for (const { callers, store, model, provider, waited } of [silent, limited]) {
        const cancel = new AbortController()
        const call = callers.call(store, model, turn, { signal: cancel.signal })
        await expect.poll(provider.requests).toBe(1)
        await callers.allWait()
        cancel.abort()
        expect(await call).toMatchObject({ kind: 'cancelled' })
        expect(waited()).toBe(0)
      }
    })

    test('an answer that hangs is given up after its time and asked for again', async () => {
      const { callers, store, model, provider, clock } = await setUp(open, [server.hangsInTheMiddle, server.replies])
      const heard: string[] = []
      const call = callers.call(store, model, turn, { onText: (delta) => heard.push(delta) })
      await expect.poll(() => heard.length).toBe(1)
      clock.advance(LIMITS.modelTryMs)
      await expect.poll(() => callers.warnings.length).toBe(1)
      expect(await callers.ended(call)).toMatchObject({ kind: 'replied', spent: { inputTokens: 50 } })
      await expect.poll(provider.abandoned).toBe(1)
      expect(provider.requests()).toBe(2)
    })

    test('a provider that is not there is asked four times, then the connection is named', async () => {
      const { callers, store } = await setUp(open, [server.replies])
      const nowhere = await open('http://127.0.0.1:9/v1', callers.clock)
      const outcome = await callers.ended(callers.call(store, nowhere))
      expect(outcome).toMatchObject({ kind: 'failed', code: 'model', error: { code: 'model/connection' } })
      expect(callers.warnings).toHaveLength(3)
    })
  })
}
