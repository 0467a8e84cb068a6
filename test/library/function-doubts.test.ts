import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { describe, expect, inject, onTestFinished, test } from 'vitest'

import { createRuntime, defineFunction, notDone } from '../../src/index.ts'
import type { Doubt, FunctionDefinition, Runtime, RuntimeOptions } from '../../src/index.ts'
import { temporaryFolder, withParameters } from '../support/engines.ts'
import { startProcess, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'
import { peekState } from '../support/peek.ts'

async function open(functions: readonly FunctionDefinition[], more: Partial<RuntimeOptions> = {}): Promise<Runtime> {
  const home = join(temporaryFolder(), 'home')
  const runtime = await createRuntime({ home, agents: functions, warn: () => {}, ...more } as RuntimeOptions)
  onTestFinished(() => runtime.close())
  await runtime.start()
  return runtime
}

const firstDoubt = (runtime: Runtime): Promise<Doubt> =>
  until('something is in doubt', async () => (await runtime.doubts.list())[0])

/** The run's steps, once it is over: with a deadline, as nobody cancels it. */
async function stepsOnceOver(home: string, runId: string): Promise<unknown[]> {
  const path = join(home, 'holdfast.db')
  const isOver = async () => ['failed', 'succeeded'].includes((await peekState(`sqlite:${path}`, runId)) ?? '')
  await until('its run is over', async () => (await isOver()) || undefined, 10_000)
  using database = new DatabaseSync(path, { readOnly: true })
  return database.prepare('select name, state, tries, result, error, settled_by from steps').all()
}

/** A function whose second step breaks off in the middle when it is tried for the first time. */
function breaking() {
  const tried: string[] = []
  const clerk = defineFunction('clerk', async (run) => {
    const one = await run.step('one', () => tried.push('one'))
    const two = await run
      .step('two', ({ key }) => {
        tried.push(key)
        if (tried.length === 2) throw new Error('the line went dead')
        return 'by itself'
      })
      .catch((error: Error & { code?: string }) => `${error.code}: ${error.message}`)
    return { one, two: await run.step('three', () => two) }
  })
  return { clerk, tried }
}

describe('a step that was cut off', () => {
  test('is listed as a doubt with its function and its key, and its run waits [actions/no-blind-retry]', async () => {
    const { clerk, tried } = breaking()
    const runtime = await open([clerk])
    const { runId } = await runtime.call({ function: 'clerk', input: { to: 'Ada' } })
    const doubt = await until('its run waits', async () =>
      (await runtime.doubts.list()).find(({ runState }) => runState === 'parked'),
    )
    expect(doubt).toMatchObject({ runId, agent: 'clerk', tool: 'two', state: 'in_doubt', runState: 'parked' })
    expect(doubt).toMatchObject({
      input: { function: 'clerk', key: `${runId}/two`, input: { to: 'Ada' } },
      seen: 'the line went dead',
    })
    expect(tried).toHaveLength(2)
  })

  test.each([
    [{ resolution: 'happened', result: 'by hand' }, 'by hand', 2],
    [{ resolution: 'did-not-happen' }, 'step/failed: it did not happen, as Grace says', 2],
    [{ resolution: 'give-up' }, 'step/unknown: nobody knows whether two happened, as Grace says', 2],
    [{ resolution: 'run-again' }, 'by itself', 3],
  ] as const)('goes on as a person says: %o', async (resolution, two, tries) => {
    const { clerk, tried } = breaking()
    const runtime = await open([clerk])
    const call = await runtime.call({ function: 'clerk' })
    const { id } = await firstDoubt(runtime)
    await runtime.doubts.resolve(id, { ...resolution, by: 'Grace' })
    expect(await call.result()).toEqual({ one: 1, two })
    expect(tried).toHaveLength(tries)
    expect(new Set(tried.slice(1)).size).toBe(1)
    expect(await runtime.doubts.list()).toEqual([])
  })

  test('is settled by its probe at once when its function is still there', async () => {
    const asked: string[] = []
    const answers = ['done', 'not_done'] as const
    const sender = defineFunction<number>('sender', (run) =>
      run.step('send', () => Promise.reject(new Error('no answer')), {
        probe: ({ key }) => {
          asked.push(key)
          const outcome = answers[run.input]!
          return outcome === 'done' ? { outcome, result: 'sent' } : { outcome }
        },
      }),
    )
    const runtime = await open([sender])
    expect(await (await runtime.call({ function: 'sender', input: 0 })).result()).toBe('sent')
    const second = await runtime.call({ function: 'sender', input: 1 })
    await expect(second.result()).rejects.toMatchObject({ code: 'run/tool' })
    expect(asked).toHaveLength(2)
    expect(await runtime.doubts.list()).toEqual([])
  })

  test('is not done again where its probe says that it was done since, whatever a person had seen [actions/no-blind-retry]', async () => {
    let [tries, world] = [0, 'unknown' as 'unknown' | 'done']
    const sender = defineFunction('sender', (run) =>
      run.step('send', () => Promise.reject(new Error(`no answer to ${(tries += 1)}`)), {
        probe: () => (world === 'done' ? { outcome: world, result: 'sent' } : { outcome: world }),
      }),
    )
    const runtime = await open([sender])
    const call = await runtime.call({ function: 'sender' })
    const { id } = await firstDoubt(runtime)
    // Who had begun it comes to it only now.
    world = 'done'
    await runtime.doubts.resolve(id, { resolution: 'run-again', by: 'Grace' })
    expect(await call.result()).toBe('sent')
    expect(tries).toBe(1)
    expect(await runtime.doubts.list()).toEqual([])
  })

  const endless: unknown[] = []
  endless.push(endless)

  test.each([
    ['at once', 'a BigInt', 1n],
    ['at once', 'what contains itself', endless],
    ['once a person has had it run again', 'a BigInt', 1n],
  ])(
    'is done where its probe says so, %s, with %s, which cannot be kept: its run fails, and nobody does it again [actions/once] [actions/no-blind-retry]',
    async (when, _, result) => {
      const home = join(temporaryFolder(), 'home')
      let tries = 0
      const sender = defineFunction('sender', (run) =>
        run.step('send', () => Promise.reject(new Error(`no answer to ${(tries += 1)}`)), {
          probe: () => (when === 'at once' || run.attempt > 1 ? { outcome: 'done', result } : { outcome: 'unknown' }),
        }),
      )
      const asked = { function: 'sender', key: 'k' }
      const runtime = await open([sender], { home })
      const call = await runtime.call(asked)
      if (when !== 'at once')
        await runtime.doubts.resolve((await firstDoubt(runtime)).id, { resolution: 'run-again', by: 'Grace' })
      const message = expect.stringContaining('what the probe of step send said of it cannot be kept') as string
      const send = { name: 'send', state: 'done', tries: 1, result: null, error: message, settled_by: 'its probe' }
      expect(await stepsOnceOver(home, call.runId)).toEqual([send])
      await expect(call.result()).rejects.toMatchObject({ code: 'run/validation', message })
      expect(await runtime.doubts.list()).toEqual([])
      await runtime.close()
      const again = await (await open([sender], { home })).call(asked)
      await expect(again.result()).rejects.toMatchObject({ code: 'run/validation', message })
      expect(tries).toBe(1)
    },
  )

  test.each(['unknown', 'not_done'] as const)(
    'and is to be done again stays in doubt where its run is cancelled while its probe is asked, which says %s [actions/no-blind-retry]',
    async (outcome) => {
      let tries = 0
      const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<{ outcome: typeof outcome }>()]
      const sender = defineFunction('sender', (run) =>
        run.step('send', () => Promise.reject(new Error(`no answer to ${(tries += 1)}`)), {
          probe: ({ signal }) => {
            if (run.attempt === 1) return { outcome: 'unknown' }
            signal.addEventListener('abort', () => answer.resolve({ outcome }))
            asked.resolve()
            return answer.promise
          },
        }),
      )
      const runtime = await open([sender])
      const call = await runtime.call({ function: 'sender' })
      const { id } = await firstDoubt(runtime)
      await runtime.doubts.resolve(id, { resolution: 'run-again', by: 'Grace' })
      await asked.promise
      await call.cancel()
      await expect(call.result()).rejects.toMatchObject({ code: 'run/cancelled' })
      expect(await runtime.doubts.list()).toMatchObject([{ id, state: 'in_doubt', tries: 1 }])
      expect(tries).toBe(1)
    },
  )

  test('beside another that goes on: the other is over and recorded before the run waits', async () => {
    const gate = Promise.withResolvers<string>()
    const pair = defineFunction('pair', async (run) =>
      Promise.all([run.step('slow', () => gate.promise), run.step('bad', () => Promise.reject(new Error('cut off')))]),
    )
    const runtime = await open([pair])
    const call = await runtime.call({ function: 'pair' })
    const { id, runState } = await firstDoubt(runtime)
    expect(runState).toBe('running')
    gate.resolve('slow')
    await until('it waits', async () => ((await runtime.doubts.get(id)).runState === 'parked' ? true : undefined))
    await runtime.doubts.resolve(id, { resolution: 'happened', result: 'good' })
    expect(await call.result()).toEqual(['slow', 'good'])
  })
})

describe('what a step came to that cannot be kept', () => {
  test.each([
    ['itself returns it', undefined],
    ['throws, and its probe says it', () => ({ outcome: 'done', result: 1n }) as const],
  ])(
    'ends its run also where that waits for a person first, and its step %s: nobody goes on without it [runs/paid-work-kept]',
    async (_, probe) => {
      const gate = Promise.withResolvers<void>()
      let [tries, ends] = [0, 0]
      const count = async () => {
        tries += 1
        await gate.promise
        if (probe !== undefined) throw new Error('no answer')
        return 1n
      }
      const pair = defineFunction('pair', async (run) => {
        const bad = run.step('bad', () => Promise.reject(new Error('cut off')))
        await Promise.all([bad, run.step('count', count, probe === undefined ? {} : { probe })])
        ends += 1
      })
      const runtime = await open([pair])
      const call = await runtime.call({ function: 'pair' })
      const { id } = await firstDoubt(runtime)
      gate.resolve()
      await until('it waits', async () => ((await runtime.doubts.get(id)).runState === 'parked' ? true : undefined))
      await runtime.doubts.resolve(id, { resolution: 'happened' })
      const message = expect.stringContaining('step count') as string
      await expect(call.result()).rejects.toMatchObject({ code: 'run/validation', message })
      expect({ tries, ends }).toEqual({ tries: 1, ends: 0 })
    },
  )
})

describe('a function that is told to stop', () => {
  test('by a cancel: its step hears it, no other begins, and what was cut off is listed [runs/cancel-is-final]', async () => {
    const begun = Promise.withResolvers<void>()
    let after = 0
    const slow = defineFunction('slow', async (run) => {
      await run.step('wait', ({ signal }) => {
        begun.resolve()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
      })
      after += 1
    })
    const runtime = await open([slow])
    const call = await runtime.call({ function: 'slow' })
    await begun.promise
    await call.cancel('enough')
    await expect(call.result()).rejects.toMatchObject({ code: 'run/cancelled' })
    expect(await firstDoubt(runtime)).toMatchObject({ tool: 'wait', runState: 'cancelled' })
    expect(after).toBe(0)
  })

  test('by a cancel between two steps: the second does not begin, and its end is no success', async () => {
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let second = 0
    const two = defineFunction('two', async (run) => {
      await run.step('first', async () => {
        begun.resolve()
        await gate.promise
      })
      await run.step('second', () => (second += 1))
    })
    const runtime = await open([two])
    const call = await runtime.call({ function: 'two' })
    await begun.promise
    await call.cancel()
    gate.resolve()
    await expect(call.result()).rejects.toMatchObject({ code: 'run/cancelled' })
    expect(second).toBe(0)
    expect(await runtime.doubts.list()).toEqual([])
  })

  test('by its time limit: it fails as such', async () => {
    const slow = defineFunction('slow', (run) =>
      run.step('look', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)), {
        effect: 'read',
      }),
    )
    const runtime = await open([slow])
    const call = await runtime.call({ function: 'slow', timeout: '20ms' })
    await expect(call.result()).rejects.toMatchObject({
      code: 'run/timeout',
      message: expect.stringContaining('20ms') as string,
    })
  })
})

test('as many of a function are at work as its capacity says, and all come to their end', async () => {
  let [atWork, most] = [0, 0]
  const narrow = defineFunction<number>('narrow', (run) =>
    run.step('work', async () => {
      most = Math.max(most, (atWork += 1))
      await new Promise((resolve) => setImmediate(resolve))
      atWork -= 1
      return run.input
    }),
  )
  const runtime = await open([narrow], { capacity: { perAgent: { narrow: 2 } } })
  const calls = await runtime.callAll([1, 2, 3, 4, 5, 6].map((input) => ({ function: 'narrow', input })))
  expect(await Promise.all(calls.map((call) => call.result()))).toEqual([1, 2, 3, 4, 5, 6])
  expect(most).toBeLessThanOrEqual(2)
})

test('what a step says that it did not do can be told from what nobody knows', async () => {
  const honest = defineFunction('honest', (run) =>
    run.step('try', () => Promise.reject(notDone('no paper'))).catch((error: Error) => error.message),
  )
  const runtime = await open([honest])
  expect(await (await runtime.call({ function: 'honest' })).result()).toBe('no paper')
  expect(await runtime.doubts.list()).toEqual([])
})

const PROGRAM = join(import.meta.dirname, 'fixtures/paused-function.ts')

/** Stops it between two commits: inside of one it would hold the database for as long as it is stopped. */
async function pause(program: Running, store: string): Promise<void> {
  await until('it is stopped between two commits', () => {
    program.kill('SIGSTOP')
    if (!store.startsWith('sqlite:') || isFree(store.slice('sqlite:'.length))) return Promise.resolve(true)
    program.kill('SIGCONT')
    return Promise.resolve(undefined)
  })
}

function isFree(file: string): boolean {
  using database = new DatabaseSync(file)
  try {
    database.exec('begin immediate; rollback')
    return true
  } catch {
    return false
  }
}

/** One program is paused in the middle of its write, beyond its lease, and another has taken its run over. */
async function paused(engine: 'sqlite' | 'postgres') {
  const folder = temporaryFolder()
  const [home, ledger, gate] = [join(folder, 'home'), join(folder, 'ledger'), join(folder, 'gate')]
  const schema = `function_${randomBytes(6).toString('hex')}`
  const store = engine === 'sqlite' ? `sqlite:${folder}/one.db` : withParameters(inject('postgres'), { schema })
  const start = (role: string) => startProcess(process.execPath, [PROGRAM, home, store, ledger, gate, role], {})
  const first = start('first')
  await until('its write has begun', () => Promise.resolve(existsSync(`${gate}.begun`) || undefined))
  await pause(first, store)
  const second = start('second')
  const watching = await createRuntime({ home, store, agents: [], warn: () => {} })
  onTestFinished(() => watching.close())
  const parked = () =>
    until('its run waits for a person', async () =>
      (await watching.doubts.list()).find(({ runState }) => runState === 'parked'),
    )
  const entries = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : [])
  const doubt = await Promise.race([
    parked(),
    second.ended.then(({ stdout }) => Promise.reject(new Error(`it was done again: ${stdout}`))),
  ])
  return { first, second, watching, doubt, parked, entries, proceed: () => writeFileSync(gate, '') }
}

describe.each(['sqlite', 'postgres'] as const)(
  'on %s a program is paused in front of its write, and its run taken over',
  (engine) => {
    test('although its probe says "not done" and a person says "run again", nobody else does it while it could: one effect [actions/once] [runs/fenced]', async () => {
      const { first, second, watching, doubt, parked, entries, proceed } = await paused(engine)
      expect(doubt.seen).toContain(`process ${first.pid}`)
      expect(doubt.seen).toContain('its probe says that it is not done')
      await watching.doubts.resolve(doubt.id, { resolution: 'run-again', by: 'Grace' })
      await until('the doubt is back', async () =>
        (await parked()).seen?.startsWith('it was not done again') ? true : undefined,
      )
      expect(entries()).toEqual([])
      proceed()
      first.kill('SIGCONT')
      // It says itself what it did: nobody has to decide that any more.
      expect((await second.ended).stdout).toContain('{"paid":"first"')
      await first.ended
      expect(entries()).toEqual(['paid'])
      expect(await watching.doubts.list()).toEqual([])
    })

    test('and killed: then a person may have it run again, and that is the one effect [actions/once]', async () => {
      const { first, second, watching, doubt, entries } = await paused(engine)
      first.kill('SIGKILL')
      await first.ended
      await watching.doubts.resolve(doubt.id, { resolution: 'run-again', by: 'Grace' })
      expect((await second.ended).stdout).toContain('{"paid":"second"')
      expect(entries()).toEqual(['paid'])
    })
  },
)
