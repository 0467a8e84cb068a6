import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { describe, expect, onTestFinished, test } from 'vitest'

import { createRuntime, defineFunction, notDone } from '../../src/index.ts'
import type { FunctionDefinition } from '../../src/index.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { startProcess } from '../support/holdfast.ts'

const PROGRAM = builtFixture(new URL('fixtures/doomed-function.ts', import.meta.url))
const lines = (file: string) => readFileSync(file, 'utf8').split('\n').filter(Boolean)

async function open(...functions: FunctionDefinition[]) {
  const home = join(temporaryFolder(), 'home')
  const warnings: string[] = []
  const runtime = await createRuntime({ home, agents: functions, warn: (message) => warnings.push(message) })
  onTestFinished(() => runtime.close())
  await runtime.start()
  return { runtime, home, warnings }
}

describe('a function', () => {
  test('that is called on a thread of its own runs there, wherever it is carried out', async () => {
    const { runtime, home } = await open(defineFunction('where', (run) => run.id))
    const calls = [
      await runtime.call({ function: 'where', threadId: 'diary' }),
      ...(await runtime.callAll([{ function: 'where', threadId: 'diary' }, { function: 'where' }])),
    ]
    await Promise.all(calls.map((call) => call.result()))
    const database = new DatabaseSync(join(home, 'holdfast.db'), { readOnly: true })
    onTestFinished(() => database.close())
    const threads = database.prepare('select thread_id from runs order by seq').all()
    expect(threads.map((row) => row['thread_id'])).toEqual(['diary', 'diary', 'calls:where'])
  })

  test('that is called on a thread of its own opens no other one', async () => {
    const { runtime, home } = await open(defineFunction('alone', (run) => run.id))
    await (await runtime.call({ function: 'alone', threadId: 'diary' })).result()
    const database = new DatabaseSync(join(home, 'holdfast.db'), { readOnly: true })
    onTestFinished(() => database.close())
    expect(database.prepare('select id from threads').all()).toMatchObject([{ id: 'diary' }])
  })

  test('is called with an input, takes steps, and its result comes back', async () => {
    const add = defineFunction<{ numbers: number[] }>('add', async (run) => {
      let sum = 0
      for (const number of run.input.numbers) sum = await run.step('plus', () => sum + number)
      return { sum }
    })
    const { runtime, warnings } = await open(add)
    const call = await runtime.call({ function: 'add', input: { numbers: [1, 2, 3] } })
    expect(await call.result()).toEqual({ sum: 6 })
    expect(warnings).toEqual([])
  })

  test('that is called twice with one key runs once, and both hear of it', async () => {
    let ran = 0
    const { runtime } = await open(defineFunction('once', () => ++ran))
    const calls = [
      await runtime.call({ function: 'once', key: 'k' }),
      await runtime.call({ function: 'once', key: 'k' }),
    ]
    expect(await Promise.all(calls.map((call) => call.result()))).toEqual([1, 1])
    expect(ran).toBe(1)
    await expect(runtime.call({ function: 'once', key: 'k', input: 2 })).rejects.toMatchObject({ code: 'usage/key' })
  })

  test('can be called many times at once, and each gets its own result', async () => {
    const double = defineFunction<number>('double', (run) => run.step('twice', () => run.input * 2))
    const { runtime } = await open(double)
    const inputs = Array.from({ length: 300 }, (_, index) => index)
    const calls = await runtime.callAll(inputs.map((input) => ({ function: 'double', input })))
    expect(await Promise.all(calls.map((call) => call.result()))).toEqual(inputs.map((input) => input * 2))
  })

  test('whose step says that nothing happened can go on; what it throws itself is its failure', async () => {
    const careful = defineFunction<string>('careful', async (run) => {
      const first = await run
        .step('try', () => Promise.reject(notDone('no paper')))
        .catch((error: Error) => error.message)
      if (run.input === 'fail') throw new Error(`gave up: ${first}`)
      return first
    })
    const { runtime } = await open(careful)
    expect(await (await runtime.call({ function: 'careful', input: 'go on' })).result()).toContain('no paper')
    const failing = await runtime.call({ function: 'careful', input: 'fail' })
    await expect(failing.result()).rejects.toMatchObject({ message: expect.stringContaining('gave up: ') as string })
  })

  test('is carried out when its time has come', async () => {
    const heard: unknown[] = []
    const { runtime } = await open(defineFunction('ring', (run) => heard.push(run.input)))
    await runtime.schedules.add({ name: 'bell', in: '10ms', function: 'ring', input: 'noon' })
    await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['noon'])
    await expect
      .poll(async () => (await runtime.schedules.occurrences('bell')).at(0)?.state, { timeout: 10_000 })
      .toBe('succeeded')
  })

  test('that failed after a write is not tried again by its schedule [schedule/every-firing-accounted]', async () => {
    let paid = 0
    const payer = defineFunction('payer', async (run) => {
      await run.step('pay', () => (paid += 1))
      throw new Error('no paper for the receipt')
    })
    const { runtime } = await open(payer)
    await runtime.schedules.add({ name: 'payday', in: '10ms', function: 'payer' })
    const last = async () => (await runtime.schedules.occurrences('payday'))[0]
    await expect
      .poll(async () => (await last())?.runId !== undefined && (await last())?.state, { timeout: 10_000 })
      .toBe('failed')
    expect(paid).toBe(1)
  })
})

/** Kills a program in the middle of a step, starts it again, and says what it did. */
async function killed(flavour: string, when: 'before' | 'after') {
  const folder = temporaryFolder()
  const ledger = join(folder, 'ledger.txt')
  const start = () => startProcess(process.execPath, [PROGRAM, join(folder, 'home'), flavour, ledger, when], {}).ended
  const first = await start()
  expect({ code: first.code, stdout: first.stdout }).toEqual({ code: null, stdout: '' })
  const second = await start()
  expect(second).toMatchObject({ code: 0, stderr: '' })
  const tries = lines(`${ledger}.tries`)
  return {
    said: second.stdout.trim(),
    entries: lines(ledger),
    tries: tries.map((line) => line.split(' ')[0]),
    keys: new Set(tries),
  }
}

describe.each(engines)('with more calls than places, on $name', (engine) => {
  // Claims go out while others are under way: together they ask for no more than there is.
  test.each([1, 3])('%i are at work at once at most, and all come to their end', async (places) => {
    let [atWork, most] = [0, 0]
    const busy = defineFunction<number>('busy', async (run) => {
      most = Math.max(most, (atWork += 1))
      await new Promise((resolve) => setTimeout(resolve, run.input % 3))
      atWork -= 1
      return run.input
    })
    const { url } = await engine.database()
    const runtime = await createRuntime({ home: join(temporaryFolder(), 'home'), store: url, agents: [busy] })
    onTestFinished(() => runtime.close())
    const inputs = Array.from({ length: 20 }, (_, index) => index)
    const before = await runtime.callAll(inputs.map((input) => ({ function: 'busy', input })))
    await runtime.start({ calls: places })
    const after = await runtime.callAll(inputs.map((input) => ({ function: 'busy', input })))
    expect(await Promise.all([...before, ...after].map((call) => call.result()))).toEqual([...inputs, ...inputs])
    expect(most).toBeLessThanOrEqual(places)
  })
})

describe('a program that is killed in the middle of a step of its function, and started again', () => {
  const DONE = JSON.stringify({ written: ['one', 'two', 'three'], attempt: 2 })
  const ONCE = ['one', 'two', 'three']

  test.each(['before', 'after'] as const)(
    'with a probe, killed %s its effect: once, and the step before it is not done again [actions/once]',
    async (when) => {
      const tries = when === 'before' ? ['one', 'two', 'two', 'three'] : ONCE
      expect(await killed('probe', when)).toMatchObject({ said: DONE, entries: ONCE, tries })
    },
  )

  test.each(['before', 'after'] as const)(
    'that honours its key, killed %s its effect: again, by the same key [actions/once]',
    async (when) => {
      const end = await killed('idempotent', when)
      expect(end).toMatchObject({ said: DONE, entries: ONCE, tries: ['one', 'two', 'two', 'three'] })
      expect(end.keys.size).toBe(3)
    },
  )

  test('without either: in doubt, never run again [actions/no-blind-retry]', async () => {
    const end = await killed('plain', 'before')
    expect(end).toMatchObject({ entries: ['one'], tries: ['one', 'two'] })
    expect(end.said).toBe('in doubt: write#2\nwrite#2 of a run that is parked')
  })

  test('with a probe that says what cannot be kept: it fails and says why, its write is done, and no doubt is listed [actions/once] [actions/no-blind-retry]', async () => {
    const end = await killed('unkept', 'after')
    expect(end).toMatchObject({ entries: ['one', 'two'], tries: ['one', 'two'] })
    const why = expect.stringContaining('what the probe of step write#2 said of it cannot be kept') as string
    expect(end.said.split('\n')).toEqual([why])
  })

  test('with other code: it fails and says why, nothing is done under another name, and what was cut off is listed [actions/once]', async () => {
    const end = await killed('renamed', 'after')
    expect(end).toMatchObject({ entries: ['one', 'two'], tries: ['one', 'two'] })
    expect(end.said).toContain('it comes to step scribble where write, write#2 is recorded')
    expect(end.said).toContain('write#2 of a run that is failed')
  })

  test('a read is simply performed again, with those before it that were not recorded yet', async () => {
    const { said, tries } = await killed('read', 'before')
    expect(said).toBe(DONE)
    expect(tries.filter((entry) => entry !== 'one')).toEqual(['two', 'two', 'three'])
  })
})
