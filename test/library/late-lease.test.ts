import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { createRuntime, defineFunction } from '../../src/index.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** A network that fails for as long as it takes a worker to give up its lease. */
async function network() {
  const { url } = await engines.find(({ name }) => name === 'postgres')!.database()
  const proxy = await TcpProxy.before(url)
  onTestFinished(() => proxy.close())
  const fail = (signal: AbortSignal) => {
    proxy.refusing = true
    for (const link of proxy.links()) link.reset()
    signal.addEventListener('abort', () => (proxy.refusing = false), { once: true })
  }
  return { url: proxy.through(url), fail }
}

test('a function whose lease was late while a step was about to begin is let go of, taken up again, and ends [actions/once]', async () => {
  const { url, fail } = await network()
  let done = 0
  const careful = defineFunction('careful', async (run) => {
    if (run.attempt === 1) fail(run.signal)
    return run.step('one', () => ++done, { probe: () => ({ outcome: 'not_done' }) })
  })
  const home = join(temporaryFolder(), 'home')
  const runtime = await createRuntime({ home, store: url, agents: [careful], lease: '1s', warn: () => {} })
  onTestFinished(() => runtime.close())
  await runtime.start()
  const call = await runtime.call({ function: 'careful', key: 'one' })
  expect(await call.result()).toBe(1)
  expect(done).toBe(1)
})
