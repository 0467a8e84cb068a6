import { expect, test } from 'vitest'

import type { RunView } from '../../src/runs/view.ts'
import { INPUT_TOKENS, providerServer, refuses, replies } from '../model/provider-server.ts'
import type { Behaviour, ProviderServer } from '../model/provider-server.ts'
import * as server from '../model/provider-server.ts'
import { AgentInstallation } from '../support/agents.ts'
import { until } from '../support/holdfast.ts'

const MODEL = 'anthropic/claude-sonnet-5'

/** An agent of the AI SDK's provider package, whose account is a server on loopback. */
async function install(behaviours: readonly Behaviour[], more: object = {}) {
  const provider = await providerServer(behaviours)
  const patient = { model: MODEL }
  const other = { replies: [{ text: 'meanwhile' }] }
  const env = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: 'test' }
  return { provider, place: new AgentInstallation({ agents: { patient, other }, ...more }, { env }) }
}

const asked = (provider: ProviderServer, times: number) =>
  until(`the provider was asked ${times} times`, () => Promise.resolve(provider.requests() >= times || undefined))

/** Clocks of two processes and a header in whole seconds: an arrival may be this much early. */
const CLOCK_MS = 50

test('an agent waits as its provider says, in seconds or in milliseconds, and what broken answers cost is on the bill [R6] [T8]', async () => {
  const { place, provider } = await install([refuses(429, { 'retry-after': '2' }), server.cutsTheConnection, replies])
  const second = await install([
    refuses(529, { 'retry-after-ms': '1600' }),
    refuses(429, { 'retry-after': 'soon' }),
    replies,
  ])
  const [run, other] = await Promise.all([place.ask('patient'), second.place.ask('patient')])
  expect(run).toMatchObject({ state: 'succeeded', result: { text: 'hello' }, usage: { inputTokens: 2 * INPUT_TOKENS } })
  expect(other).toMatchObject({ state: 'succeeded', usage: { inputTokens: INPUT_TOKENS } })
  expect([provider.requests(), second.provider.requests()]).toEqual([3, 3])
  const gaps = ({ arrivals }: ProviderServer) => arrivals.slice(1).map((at, index) => at - arrivals[index]!)
  const [seconds, milliseconds] = [gaps(provider), gaps(second.provider)]
  expect(seconds[0]).toBeGreaterThanOrEqual(2_000 - CLOCK_MS)
  expect(milliseconds[0]).toBeGreaterThanOrEqual(1_600 - CLOCK_MS)
  // Garbage says nothing; the second wait is our own, of 2 s.
  expect(milliseconds[1]).toBeGreaterThanOrEqual(2_000 - CLOCK_MS)
})

test('two daemons on one account wait until the same instant, also one that was killed and started again [R6] [model/patient]', async () => {
  const { place, provider } = await install([refuses(429, { 'retry-after': '4' }), replies], { lease: '3s' })
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
  expect(after).toHaveLength(runs.length)
  for (const at of after) expect(at - refusedAt!).toBeGreaterThanOrEqual(4_000 - CLOCK_MS)
  // And then one by one.
  expect(after.at(-1)! - after[0]!).toBeGreaterThanOrEqual(2 * 500 - 4 * CLOCK_MS)
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
