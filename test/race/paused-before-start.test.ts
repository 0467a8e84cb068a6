import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { continueTaken, executeClaim } from '../../src/workers/execute.ts'
import type { Executor } from '../../src/workers/execute.ts'
import { commandFolder } from '../../src/workers/home.ts'
import { recordStarting } from '../../src/runs/attempt.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import type { Store } from '../../src/store/store.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, addWorker, claim, reread, running } from '../support/world.ts'

/** A store that stops in front of every `apply` after the first `passes`, until it is let go: a worker that is paused there. */
function pausing(
  store: Store,
  passes: number,
): { readonly store: Store; readonly paused: Promise<void>; resume(): void } {
  let [applied, onPaused, resume] = [0, () => {}, () => {}]
  const paused = new Promise<void>((resolve) => (onPaused = resolve))
  const resumed = new Promise<void>((resolve) => (resume = resolve))
  const apply: Store['apply'] = async (change, ...args) => {
    const answer = await store.apply(change, ...args)
    if (++applied === passes) {
      onPaused()
      await resumed
    }
    return answer
  }
  return { store: { ...bound(store), apply }, paused, resume: () => resume() }
}

const bound = (store: Store): Store => ({
  engine: store.engine,
  apply: (change, ...args) => store.apply(change, ...args),
  read: (look, ...args) => store.read(look, ...args),
  onChange: (listener) => store.onChange(listener),
  check: () => store.check(),
  warmUp: () => store.warmUp(),
  copyTo: (path) => store.copyTo(path),
  close: () => store.close(),
})

const executor = (store: Store, home: string): Executor => ({
  store,
  home,
  clock: systemClock,
  graceMs: 1_000,
  leaseMs: LEASE_MS,
  onCommand: () => {},
  warn: () => {},
})

describe.each(engines)('a worker on $name that is paused between its intent and the start of its command', (engine) => {
  test('is fenced on disk too: when it wakes nothing is started, and the effect happens once [runs/fenced]', async () => {
    const database = await engine.database()
    const [mine, theirs] = [await database.open(), await database.open()]
    const home = join(temporaryFolder(), 'home')
    const place = new Installation()
    const [program, ...args] = place.append('once')
    const held = await running(mine, { request: { kind: 'command', argv: [program!, ...args], cwd: '/' } })

    const pause = pausing(mine, 1)
    const sleeper = executeClaim(executor(pause.store, home), held)
    await pause.paused

    const workerId = await addWorker(theirs)
    const taker = { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const taken = await theirs.apply(takeOverRun, { ...held.ref, mark: held.attempt.mark }, 'owner-dead', taker)
    await continueTaken(executor(theirs, home), taken!, commandFolder(home, held.attempt.mark))
    expect((await reread(theirs, held.run.id)).state).toBe('queued')
    const again = await claim(theirs, workerId)
    await executeClaim(executor(theirs, home), again!)
    expect(place.effects()).toEqual(['once'])

    pause.resume()
    await sleeper
    expect(place.effects()).toEqual(['once'])
    expect(await reread(theirs, held.run.id)).toMatchObject({ state: 'succeeded', attempt: 3 })
    await assertInvariants(theirs)
  })

  test('cannot even record its intent once it was taken over', async () => {
    const database = await engine.database()
    const store = await database.open()
    const held = await running(store)
    const taker = { workerId: await addWorker(store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    await store.apply(takeOverRun, { ...held.ref, mark: held.attempt.mark }, 'owner-dead', taker)
    expect(await store.apply(recordStarting, held.ref)).toBe('superseded')
    expect(await store.apply(finishRun, held.ref, { state: 'succeeded' })).toMatchObject({ kind: 'reconciled' })
  })
})
