import { describe, expect, onTestFinished, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { HoldfastError } from '../../src/base/errors.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import type { FunctionBody } from '../../src/define/function.ts'
import { CallDesk } from '../../src/library/calls.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishCall } from '../../src/runs/finish-call.ts'
import type { Store } from '../../src/store/store.ts'
import { Calls } from '../../src/workers/functions/calls.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'

type Asked = () => Promise<unknown>

interface Meddling {
  /** What happens to a change or a look; otherwise it goes its way. */
  readonly meddle?: (asked: unknown, go: Asked) => Promise<unknown>
  /** Hints of commits do not come. */
  readonly deaf?: boolean
}

function meddledWith(store: Store, { meddle = (_, go) => go(), deaf = false }: Meddling): Store {
  return new Proxy(store, {
    get(target, key) {
      if (key === 'onChange') return deaf ? () => () => {} : target.onChange.bind(target)
      if (key !== 'apply' && key !== 'read') return Reflect.get(target, key) as unknown
      return (asked: unknown, ...args: unknown[]) =>
        meddle(asked, () => (target[key] as (...given: unknown[]) => Promise<unknown>)(asked, ...args))
    },
  })
}

/** A program that calls its own functions. */
async function program(engine: TestEngine, body: FunctionBody, meddling: Meddling, clock: Clock = systemClock) {
  const store = meddledWith(await (await engine.database()).open(), meddling)
  const desk = new CallDesk({ store, clock, random, backlog: LIMITS.backlog } as never)
  onTestFinished(() => desk.close())
  const calls = new Calls({
    store,
    clock: systemClock,
    random,
    executor: { store, clock: systemClock, home: '', graceMs: 1_000, leaseMs: LEASE_MS, warn: () => {} } as never,
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    functions: new Map([['adder', { name: 'adder', body }]]),
    concurrency: 4,
    limits: {},
    onEnd: (runId, outcome) => desk.hear(runId, outcome),
    onBroken: () => {},
  })
  calls.start()
  await calls.settled()
  onTestFinished(() => calls.close())
  return { store, desk, calls }
}

const unknownCommit = () => new HoldfastError('store/unknown-commit', 'the answer was lost', { remedy: 'look it up' })

/** Its first answer is lost. */
function lostOnce(lost: unknown) {
  let times = 1
  return async (asked: unknown, go: Asked) => {
    const answer = await go()
    if (asked === lost && times-- > 0) throw unknownCommit()
    return answer
  }
}

describe.each(engines)('whoever waits for a call, on $name', (engine) => {
  test.each<[string, FunctionBody, unknown]>([
    ['its result', () => Promise.resolve(7), 7],
    ['its failure', () => Promise.reject(new Error('no paper')), 'run/tool'],
  ])('is told %s also when the answer to its end was lost', async (_, body, told) => {
    const { desk, calls } = await program(engine, body, { meddle: lostOnce(finishCall), deaf: true })
    desk.workHere(calls)
    const call = await desk.call({ function: 'adder' })
    expect(await call.result().catch(({ code }: HoldfastError) => code)).toBe(told)
  })

  test('is told of a cancel where the answer to its own end was lost', async () => {
    const begun = Promise.withResolvers<void>()
    const body: FunctionBody = async ({ signal }) => {
      begun.resolve()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    }
    const { store, desk, calls } = await program(engine, body, { meddle: lostOnce(finishCall), deaf: true })
    desk.workHere(calls)
    const call = await desk.call({ function: 'adder' })
    const result = call.result()
    await begun.promise
    await store.apply(cancelRun, call.runId as never, { by: 'ann' })
    for (const attempt of calls.held()) calls.halt(attempt, 'cancelled')
    await expect(result).rejects.toMatchObject({ code: 'run/cancelled' })
  })
})
