import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { HoldfastError } from '../../src/base/errors.ts'
import { newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { FunctionBody } from '../../src/define/function.ts'
import { callHere, giveBackCall, openCalls } from '../../src/runs/call.ts'
import type { NewCall } from '../../src/runs/call.ts'
import { heldAttempts } from '../../src/runs/recover.ts'
import { stepsOf } from '../../src/runs/step.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import type { Store } from '../../src/store/store.ts'
import { Calls } from '../../src/workers/functions/calls.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'

/** What happens to the commit that stores a call; everything else goes its way. */
type Meddle = (store: () => Promise<unknown>) => Promise<unknown>

interface Place {
  readonly store: Store
  readonly calls: Calls
  readonly call: (more?: Partial<NewCall>) => { readonly id: NewCall['id']; readonly called: Promise<unknown> }
  readonly ended: Map<string, Outcome>
  /** What was applied, by name. */
  readonly applied: string[]
}

/** The functions of a program on a real store, whose commit of a call can be meddled with. */
async function place(
  engine: TestEngine,
  body: FunctionBody,
  meddle: Meddle,
  clock: Clock = systemClock,
): Promise<Place> {
  const store = await (await engine.database()).open()
  const applied: string[] = []
  const meddled = new Proxy(store, {
    get(target, key) {
      if (key !== 'apply') return Reflect.get(target, key) as unknown
      return (change: { name?: string }, ...args: unknown[]) => {
        applied.push(change.name ?? '')
        const write = () => (target.apply as (...given: unknown[]) => Promise<unknown>)(change, ...args)
        return change === callHere ? meddle(write) : write()
      }
    },
  })
  await store.apply(openCalls, 'adder')
  const ended = new Map<string, Outcome>()
  const executor = { store: meddled, clock, home: '', graceMs: 1_000, leaseMs: LEASE_MS, warn: () => {} } as never
  const calls = new Calls({
    store: meddled,
    clock,
    random,
    executor,
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    functions: new Map([['adder', { name: 'adder', body }]]),
    concurrency: 4,
    limits: {},
    onEnd: (runId, outcome) => ended.set(runId, outcome),
    onBroken: () => {},
  })
  calls.start()
  await calls.settled()
  onTestFinished(() => calls.close())
  const call = (more: Partial<NewCall> = {}) => {
    const wanted: NewCall = { id: newRunId(random), agent: 'adder', input: '[1]', ...more }
    return { id: wanted.id, called: calls.callHere(wanted, calls.reserve('adder')!) }
  }
  applied.length = 0
  return { store, calls, call, ended, applied }
}

/** Two steps side by side, as soon as it begins. */
function twoSteps() {
  const seen: string[] = []
  const signals: AbortSignal[] = []
  const body: FunctionBody = async (run) => {
    seen.push('begun')
    signals.push(run.signal)
    const did = (name: string) => run.step(name, () => void seen.push(`did ${name}`))
    await Promise.all([did('one'), did('two')])
    await did('three')
  }
  return { body, seen, signals }
}

const states = async (store: Store, id: NewCall['id']) =>
  (await store.read(stepsOf, id)).map(({ name, state }) => `${name} ${state}`)

/** Let go of, and no step of it is on record: whoever takes it begins at its beginning. */
async function isGivenBack(store: Store, id: NewCall['id']): Promise<void> {
  await expect
    .poll(async () => (await store.read(heldAttempts)).map(({ runId, releasedAt }) => [runId, releasedAt !== null]), {
      timeout: 15_000,
    })
    .toEqual([[id, true]])
  expect(await states(store, id)).toEqual([])
  await assertInvariants(store)
}

describe.each(engines)('a function that is called where there is a place for it, on $name', (engine) => {
  test('begins at once; its first steps are stored with its call, and nothing is done before that commit [actions/once]', async () => {
    const { body, seen } = twoSteps()
    const gate = Promise.withResolvers<void>()
    const at = await place(engine, body, (write) => gate.promise.then(write))
    const { id, called } = at.call()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual(['begun'])
    gate.resolve()
    await called
    await at.calls.settled()
    expect(seen).toEqual(['begun', 'did one', 'did two', 'did three'])
    expect(at.ended.get(id)).toEqual({ state: 'succeeded' })
    expect(await states(at.store, id)).toEqual(['one done', 'two done', 'three done'])
    expect(at.applied).toEqual(['callHere', 'advanceRun', 'finishCall'])
    await assertInvariants(at.store)
  })

  test('and whose call could not be stored is told to stop, and does nothing', async () => {
    const { body, seen, signals } = twoSteps()
    const refused = new HoldfastError('store/full', 'no space', { remedy: 'make some' })
    const at = await place(engine, body, () => Promise.reject(refused))
    const { id, called } = at.call()
    await expect(called).rejects.toBe(refused)
    await at.calls.settled()
    expect([seen, signals[0]!.aborted]).toEqual([['begun'], true])
    // Nothing is stored, and nothing is tried for it.
    await at.calls.stored()
    expect(at.applied).toEqual(['callHere'])
    expect(await states(at.store, id)).toEqual([])
    // Its place is another's now.
    expect(at.calls.reserve('adder')).toBeDefined()
  })

  test('and of whose call nobody knows whether it is stored: it is given back with nothing in doubt [actions/no-blind-retry]', async () => {
    const { body, seen } = twoSteps()
    const unknown = new HoldfastError('store/unknown-commit', 'the answer was lost', { remedy: 'look it up' })
    const at = await place(engine, body, (write) => write().then(() => Promise.reject(unknown)))
    const { id, called } = at.call()
    await expect(called).rejects.toBe(unknown)
    // As the worker does when the renewal of its leases has found it twice.
    for (const stray of await at.store.read(heldAttempts)) await at.calls.giveBack(stray)
    await isGivenBack(at.store, id)
    expect(seen).toEqual(['begun'])
  })

  test('and that cannot be given back at once is given back with its steps when it is found again [actions/no-blind-retry]', async () => {
    const { body } = twoSteps()
    let broken = true
    const at = await place(engine, body, async (write) => {
      const stored = await write()
      at.calls.close()
      return stored
    })
    const apply = at.store.apply.bind(at.store)
    vi.spyOn(at.store, 'apply').mockImplementation((change, ...args) =>
      broken && (change as unknown) === giveBackCall ? Promise.reject(new Error('away')) : apply(change, ...args),
    )
    const { id, called } = at.call()
    await called
    await at.calls.stored()
    expect(await states(at.store, id)).toEqual(['one started', 'two started'])
    broken = false
    for (const stray of await at.store.read(heldAttempts)) await at.calls.giveBack(stray)
    await isGivenBack(at.store, id)
  })

  test('and closes before its call is stored: it is given back', async () => {
    const { body, seen } = twoSteps()
    const at = await place(engine, body, async (write) => {
      const stored = await write()
      at.calls.close()
      return stored
    })
    const { id, called } = at.call()
    // Whoever waits for its end looks for it in the store: it is carried out elsewhere.
    expect(await called).toEqual({ kind: 'existing', runId: id })
    await isGivenBack(at.store, id)
    expect(seen).toEqual(['begun'])
  })

  test('and hears later than its lease lasts that it is stored: it does nothing [runs/fenced]', async () => {
    const { body, seen } = twoSteps()
    let later = 0
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + later }
    const at = await place(engine, body, (write) => write().finally(() => (later = LEASE_MS)), clock)
    const { id, called } = at.call()
    // Whoever waits for its end looks for it in the store: it is carried out elsewhere.
    expect(await called).toEqual({ kind: 'existing', runId: id })
    await isGivenBack(at.store, id)
    expect(seen).toEqual(['begun'])
  })

  test('but with a key it begins when it is known that it is the first of that key', async () => {
    const { body, seen } = twoSteps()
    const gate = Promise.withResolvers<void>()
    const at = await place(engine, body, (write) => gate.promise.then(write))
    const { called } = at.call({ key: 'k' })
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([])
    gate.resolve()
    expect(await called).toMatchObject({ kind: 'claimed' })
    await at.calls.settled()
    expect(await at.call({ key: 'k' }).called).toMatchObject({ kind: 'existing' })
    await at.calls.settled()
    expect(seen).toEqual(['begun', 'did one', 'did two', 'did three'])
  })

  test('is another one that begins with a read: that waits for the call', async () => {
    const seen: string[] = []
    const body: FunctionBody = (run) => run.step('look', () => void seen.push('looked'), { effect: 'read' })
    const gate = Promise.withResolvers<void>()
    const at = await place(engine, body, (write) => gate.promise.then(write))
    const { id, called } = at.call()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([])
    gate.resolve()
    await called
    await at.calls.settled()
    expect(seen).toEqual(['looked'])
    expect((await reread(at.store, id)).state).toBe('succeeded')
    await assertInvariants(at.store)
  })
})
