import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, onTestFinished, test } from 'vitest'

import { openDoubts } from '../../src/actions/doubt.ts'
import { systemClock } from '../../src/base/clock.ts'
import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import { listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { openStore } from '../../src/store/open.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { startProcess, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/holdfast', import.meta.url))
const CONFIG = fileURLToPath(new URL('../support/pausing.config.ts', import.meta.url))

/** One store, and workers with home folders of their own. */
async function world(engine: TestEngine) {
  const folder = temporaryFolder()
  const ledger = join(folder, 'ledger.txt')
  const { url } = await engine.database()
  const store = await openStore(url, { clock: systemClock, random })
  onTestFinished(() => store.close())
  const holdfast = (home: string, ...args: readonly string[]) =>
    startProcess(PROGRAM, ['--config', CONFIG, '--store', url, '--home', join(folder, home), ...args], {
      LEDGER: ledger,
    })
  const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : [])
  const paused = () => until('the worker is paused', async () => (existsSync(`${ledger}.paused`) ? true : undefined))
  const doubt = (words: string) =>
    until(`a doubt that says ${words}`, async () =>
      (await store.read(openDoubts, 10)).find(({ error }) => error?.includes(words) === true),
    )
  const succeeded = () =>
    until('the run has succeeded', async () =>
      (await store.read(listRuns, { limit: 1 })).find(({ state }) => state === 'succeeded'),
    )
  const doItAgain = async (id: string) => {
    const { code, stderr } = await holdfast('desk', 'doubts', 'resolve', id, '--did-not-happen', '--run-again').ended
    expect({ code, stderr: stderr.replace(/^holdfast: .*daemon.*\n/m, '') }).toMatchObject({ code: 0 })
  }
  return { store, holdfast, lines, paused, doubt, succeeded, doItAgain }
}

const sending = () => ({
  messageId: newMessageId(random),
  runId: newRunId(random),
  threadId: newThreadId(random),
  agent: 'clerk',
  text: 'go',
  key: 'go',
})

test.each(engines)(
  'a daemon paused in front of its write, taken over, "did not happen, run it", then continued: one effect, on $name [actions/once]',
  async (engine) => {
    const { store, holdfast, lines, paused, doubt, succeeded, doItAgain } = await world(engine)
    const first = holdfast('first', 'up', '--port', '0')
    await first.said('holdfast: up:')
    await store.apply(sendMessage, sending())
    await paused()
    const second = holdfast('second', 'up', '--port', '0')
    const { id } = await doubt('its worker died')
    expect(lines()).toEqual([])
    await doItAgain(id)
    await succeeded()
    first.kill('SIGCONT')
    const again = until('it is written twice', async () => (lines().length > 1 ? true : undefined))
    await Promise.race([first.ended, again])
    expect(lines()).toEqual([`milk ${id}`])
    second.kill('SIGTERM')
    await second.ended
    await assertInvariants(store)
  },
)

test('a program of somebody else, paused in front of its write: it is not killed and nothing is done beside it [actions/once]', async () => {
  const { store, holdfast, lines, paused, doubt, succeeded, doItAgain } = await world(engines[0]!)
  // Without a daemon who sends and waits carries it out.
  const first = holdfast('first', 'send', '--agent', 'clerk', '--wait', 'go')
  await paused()
  const second = holdfast('second', 'up', '--port', '0')
  const { id } = await doubt('its worker died')
  await doItAgain(id)
  await doubt(`process ${first.pid} had begun it`)
  expect(lines()).toEqual([])
  first.kill('SIGCONT')
  await succeeded()
  expect(lines()).toEqual([`milk ${id}`])
  expect(await store.read(openDoubts, 10)).toEqual([])
  await first.ended
  second.kill('SIGTERM')
  await second.ended
  await assertInvariants(store)
})
