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
import { endedRuns } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { Calls } from '../../src/workers/functions/calls.ts'
import { handClock } from '../support/clocks.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { LEASE_MS, addWorker } from '../support/world.ts'

type Asked = () => Promise<unknown>

interface Meddling {
  /** What happens to a change or a look; otherwise it goes its way. */
  readonly meddle?: (asked: unknown, go: Asked) => Promise<unknown>
  /** Hints of commits do not come. */
  readonly deaf?: boolean
  /** Whoever carries it out does not say so: it could be another process. */
  readonly silent?: boolean
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
    onEnd: (runId, outcome) => meddling.silent === true || desk.hear(runId, outcome),
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

/** Looks for ends: how many there were, and how many of the next ones fail. */
class Looks {
  count = 0
  failing = 0
  #underWay = 0

  readonly meddle = async (asked: unknown, go: Asked) => {
    if (asked !== endedRuns) return go()
    this.count += 1
    this.#underWay += 1
    const isFailing = this.failing > 0
    if (isFailing) this.failing -= 1
    try {
      return await (isFailing ? Promise.reject(new Error('away')) : go())
    } finally {
      this.#underWay -= 1
    }
  }

  /** Resolves when nobody looks any more. */
  async over(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve))
    while (this.#underWay > 0)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe.each(engines)('whoever waits for a call that is carried out elsewhere, on $name', (engine) => {
  const seven: FunctionBody = () => Promise.resolve(7)

  /** Nobody gives a hint of a commit. */
  const unheard = async () => {
    const [clock, looks] = [handClock(), new Looks()]
    const at = await program(engine, seven, { meddle: looks.meddle, deaf: true, silent: true }, clock)
    const carryOut = () => (at.calls.look(), at.calls.settled())
    return { ...at, clock, looks, carryOut }
  }

  test('and could not look is told a moment later', async () => {
    const { desk, clock, looks, carryOut } = await unheard()
    const call = await desk.call({ function: 'adder' })
    await carryOut()
    looks.failing = 2
    const result = call.result()
    for (const failing of [1, 0]) {
      await looks.over()
      expect(looks.failing).toBe(failing)
      clock.pass(LIMITS.changePollMs)
    }
    expect(await result).toBe(7)
  })

  test('is told without a hint, too; and where nobody waits, nobody looks', async () => {
    const { desk, clock, looks, carryOut } = await unheard()
    const call = await desk.call({ function: 'adder' })
    const result = call.result()
    await looks.over()
    await carryOut()
    expect(looks.count).toBe(1)
    clock.pass(LIMITS.earCheckMs)
    expect(await result).toBe(7)
    clock.pass(LIMITS.earCheckMs * 3)
    expect([looks.count, clock.armed]).toEqual([2, 0])
    const closed = { code: 'runtime/closed' }
    const waiting = await desk.call({ function: 'adder' })
    looks.failing = 1
    const left = expect(waiting.result()).rejects.toMatchObject(closed)
    desk.close()
    await left
    await looks.over()
    await expect(waiting.result()).rejects.toMatchObject(closed)
    expect([looks.failing, clock.armed]).toEqual([0, 0])
  })

  test('is told at once behind many others that go on', async () => {
    const { desk, clock, looks, carryOut } = await unheard()
    const call = await desk.call({ function: 'adder' })
    await carryOut()
    const others = await desk.callAll(Array.from({ length: LIMITS.callsTogether }, () => ({ function: 'nobody' })))
    for (const other of others) void other.result().catch(() => {})
    await looks.over()
    let told: unknown
    void call.result().then((value) => (told = value))
    for (let turn = 0; turn < 5; turn += 1) {
      clock.pass(LIMITS.callLookMs)
      await looks.over()
    }
    expect(told).toBe(7)
  })
})
