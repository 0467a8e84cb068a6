import { expect, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { INPUT_TOKENS, providerServer, refuses, replies } from '../model/provider-server.ts'
import type { Behaviour, ProviderServer } from '../model/provider-server.ts'
import * as server from '../model/provider-server.ts'
import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'

const MODEL = 'anthropic/claude-sonnet-5'

/** An agent of the AI SDK's provider package, whose account is a server on loopback. */
async function install(behaviours: readonly Behaviour[], more: object = {}, agent: object = {}) {
  const provider = await providerServer(behaviours)
  const patient = { model: MODEL, ...agent }
  const other = { replies: [{ text: 'meanwhile' }] }
  const env = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: 'test' }
  return { provider, place: new AgentInstallation({ agents: { patient, other }, ...more }, { env }) }
}

const asked = (provider: ProviderServer, times: number) =>
  until(`the provider was asked ${times} times`, () => Promise.resolve(provider.requests() >= times || undefined))

/** Clocks of two processes and a header in whole seconds: an arrival may be this much early. */
const CLOCK_MS = 50

const gaps = ({ arrivals }: ProviderServer) => arrivals.slice(1).map((at, index) => at - arrivals[index]!)

test('an agent waits as its provider says, in seconds or in milliseconds, and what broken answers cost is on the bill [R6] [T8]', async () => {
  const seconds = await install([server.cutsTheConnection, refuses(429, { 'retry-after': '2' }), replies])
  const milliseconds = await install([
    refuses(429, { 'retry-after': 'soon' }),
    refuses(529, { 'retry-after-ms': '2400' }),
    replies,
  ])
  const runs = await Promise.all([seconds.place.ask('patient'), milliseconds.place.ask('patient')])
  expect(runs).toMatchObject([
    { state: 'succeeded', result: { text: 'hello' }, usage: { inputTokens: 2 * INPUT_TOKENS } },
    { state: 'succeeded', usage: { inputTokens: INPUT_TOKENS } },
  ])
  // What is cut off or says nothing is waited for as we think best: a second.
  for (const [{ provider }, told] of [[seconds, 2_000] as const, [milliseconds, 2_400] as const]) {
    const [own = 0, asTold = 0, ...more] = gaps(provider)
    expect(own).toBeGreaterThanOrEqual(1_000 - CLOCK_MS)
    expect(asTold).toBeGreaterThanOrEqual(told - CLOCK_MS)
    expect(more).toEqual([])
  }
})

test('a side call of an agent, to make its conversation shorter, succeeds after two 429s [R5]', async () => {
  const limited = refuses(429, { 'retry-after': '1' })
  const { place, provider } = await install([replies, limited, limited, replies, replies], {}, { contextTokens: 500 })
  const words = 'as long as a page '.repeat(150)
  const { threadId } = await place.json<RunView>(['send', '--agent', 'patient', '--wait', words])
  const second = await place.json<RunView>(['send', threadId, '--wait', words])
  expect(second).toMatchObject({ state: 'succeeded', usage: { inputTokens: 2 * INPUT_TOKENS } })
  expect(provider.requests()).toBe(5)
  const steps = (await place.whole(second.id)).steps.map(({ kind }) => kind)
  expect(steps).toEqual(['summary', 'user', 'assistant'])
  for (const gap of gaps(provider).slice(1, 3)) expect(gap).toBeGreaterThanOrEqual(1_000 - CLOCK_MS)
})

test('two daemons on one account wait until the same instant, also one that was killed and started again [R6] [model/patient]', async () => {
  const { place, provider } = await install([refuses(429, { 'retry-after': '6' }), replies], { lease: '3s' })
  const first = await place.daemon(2)
  const runs = [await place.send('patient')]
  await asked(provider, 1)
  const beside = place.beside()
  await beside.daemon(2)
  runs.push(await place.send('patient'), await place.send('patient'))
  await until('the other daemon has one of them', async () => {
    const workers = await Promise.all(
      runs.map(async ({ runId }) => (await place.whole(runId)).attempts.map(({ workerId }) => workerId)),
    )
    return new Set(workers.flat()).size > 1 || undefined
  })
  first.kill('SIGKILL')
  await first.ended
  await place.daemon(2)
  for (const { runId } of runs) expect(await place.ended(runId)).toMatchObject({ state: 'succeeded' })
  const [refusedAt, ...after] = provider.arrivals
  // More, if the machine was slow and the kill came into the middle of a call: that one is made again.
  expect(after.length).toBeGreaterThanOrEqual(runs.length)
  for (const at of after) expect(at - refusedAt!).toBeGreaterThanOrEqual(6_000 - CLOCK_MS)
  // And then one by one, 500 ms apart. The first may arrive late on a busy machine, and the last not.
  expect(after.at(-1)! - after[0]!).toBeGreaterThanOrEqual(500)
})

test('an hour is not waited for: the run is parked, its slot free, nobody asks again, and cancel ends it at once [R6] [model/patient]', async () => {
  const { place, provider } = await install([refuses(429, { 'retry-after': '3600' })], { capacity: { total: 1 } })
  await place.daemon(2)
  const { runId } = await place.send('patient')
  expect(await place.is(runId, 'parked')).toMatchObject({ state: 'parked' })
  expect(await place.ask('other')).toMatchObject({ state: 'succeeded' })
  const second = await place.send('patient')
  await place.is(second.runId, 'parked')
  expect(provider.requests()).toBe(1)
  for (const id of [runId, second.runId]) {
    expect(await place.json<RunView>(['runs', 'cancel', id])).toMatchObject({ id, state: 'cancelled' })
  }
})

test.each([
  ['a wait', refuses(429, { 'retry-after': '50' })],
  ['a call that is never answered', server.neverAnswers],
  ['an answer that hangs', server.hangsInTheMiddle],
])('cancel ends %s at once, and nothing is asked for again [R6]', async (_what, behaviour) => {
  const { place, provider } = await install([behaviour])
  await place.daemon(2)
  const { runId } = await place.send('patient')
  await asked(provider, 1)
  expect(await place.json<RunView>(['runs', 'cancel', runId])).toMatchObject({ state: 'cancelled' })
  expect(provider.requests()).toBe(1)
})
