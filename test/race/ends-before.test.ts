import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { describe, expect, onTestFinished, test } from 'vitest'

import { openDoubts } from '../../src/actions/doubt.ts'
import { newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { WorkerId } from '../../src/base/ids.ts'
import type { FunctionBody } from '../../src/define/function.ts'
import { judgeProcess, processIdentity } from '../../src/processes/identity.ts'
import { callOne, openCalls } from '../../src/runs/call.ts'
import { findRun } from '../../src/runs/run.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run, single } from '../../src/store/transition.ts'
import { engines } from '../support/engines.ts'
import { aPayer } from '../support/one-worker.ts'

/** As if it were that process. */
const become = single((id: WorkerId, pid: number) =>
  run(sql`update workers set identity = ${JSON.stringify(processIdentity(pid))} where id = ${id}`),
)

/** A call of which a step had begun in a daemon that is paused, and lost it; another takes it over, and its function is as is said. */
async function takenOver(store: Store, body: FunctionBody, had: 'a step' | 'nothing' = 'a step') {
  const daemon = spawn('sleep', ['1000'])
  onTestFinished(() => void daemon.kill('SIGKILL'))
  await once(daemon, 'spawn')
  const identity = processIdentity(daemon.pid)!
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const wait = () => (begun.resolve(), go.promise)
  const first = await aPayer(store, (call) => (had === 'nothing' ? wait() : call.step('pay', wait)))
  const id = newRunId(random)
  await store.apply(openCalls, 'payer')
  await store.apply(callOne, { id, agent: 'payer', input: '1' })
  await first.start()
  await begun.promise
  await first.drain(0)
  await store.apply(become, first.id, daemon.pid!)
  const second = await aPayer(store, body)
  expect(await second.recover()).toHaveLength(1)
  await second.settled()
  await second.drain(0)
  go.resolve()
  return { id, verdict: judgeProcess(identity) }
}

describe.each(engines)('on $name a function is taken over whose step a paused daemon could still do', (engine) => {
  test('it fails before it comes to that step: the daemon is ended before that is anybody\u2019s doubt [actions/no-blind-retry]', async () => {
    const store = await (await engine.database()).open()
    const { id, verdict } = await takenOver(store, () => Promise.reject(new Error('its code is wrong by now')))
    expect((await store.read(findRun, id))?.state).toBe('failed')
    expect(await store.read(openDoubts, 9)).toMatchObject([{ tool: 'pay' }])
    expect(verdict).toBe('dead')
  })

  test('it had begun nothing, and whoever has it now does its own write: the daemon goes on', async () => {
    const store = await (await engine.database()).open()
    const { id, verdict } = await takenOver(store, (call) => call.step('pay', async () => 'paid'), 'nothing')
    expect(await store.read(findRun, id)).toMatchObject({ state: 'succeeded', result: 'paid' })
    expect(await store.read(openDoubts, 9)).toEqual([])
    expect(verdict).toBe('alive')
  })
})
