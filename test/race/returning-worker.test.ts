import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, onTestFinished, test } from 'vitest'

import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { attemptsOf } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { isTerminal } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { openCrew } from '../../src/workers/crew.ts'
import { commandFolder } from '../../src/workers/home.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import type { TestDatabase, TestEngine } from '../support/engines.ts'
import { processesWith, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { reread, submitted } from '../support/world.ts'

const LEASE_MS = 500
/** Of those that must not lose it, however busy the machine is. */
const LONG_MS = 60_000
const postgres = engines.find(({ name }) => name === 'postgres')!

/** Goes on for a while after it was let go, so that a stop which was heard would be seen. */
const GATED = 'touch "$1/here"; until [ -e "$1/go" ]; do sleep 0.02; done; sleep 0.3; echo done >> "$1/ledger.txt"'

/** A worker with a home and a connection of its own. */
async function workerOn(database: TestDatabase, clock: Clock, leaseMs: number) {
  const [inner, warnings] = [await database.open(), new Array<string>()]
  let isCut = false
  const through =
    <Args extends readonly unknown[], T>(work: (...args: Args) => Promise<T>) =>
    (...args: Args) =>
      isCut ? Promise.reject(new Error('the network is gone')) : work(...args)
  const store: Store = {
    engine: inner.engine,
    apply: through(inner.apply.bind(inner)),
    read: through(inner.read.bind(inner)),
    onChange: (listener) => inner.onChange(listener),
    check: () => inner.check(),
    warmUp: () => inner.warmUp(),
    copyTo: (path) => inner.copyTo(path),
    close: () => inner.close(),
  }
  const home = join(temporaryFolder(), 'home')
  const env = { PATH: process.env['PATH'] ?? '' }
  const warn = (message: string) => void warnings.push(message)
  const options = { store, clock, random, warn, live: () => {}, home, config: undefined, backlog: 100, env }
  const crew = await openCrew({ ...options, leaseMs })
  const worker = await crew.registerWorker('command', { concurrency: 4, graceMs: 1_000 })
  onTestFinished(async () => {
    isCut = false
    await worker.stop()
    await crew.close()
  })
  return { store, home, worker, warnings, cut: () => (isCut = true) }
}

/** A command that the first worker has begun, and that goes on until it is let go. */
async function begun(engine: TestEngine) {
  const database = await engine.database()
  // It stands still: this one renews nothing unless it is told to.
  const [clock, folder] = [new FakeClock(), temporaryFolder()]
  const first = await workerOn(database, clock, LEASE_MS)
  const request = { kind: 'command', argv: ['/bin/sh', '-c', GATED, 'sh', folder], cwd: '/' } as const
  const { id } = await submitted(first.store, { request })
  void first.worker.perform(id)
  await until('it is under way', () => Promise.resolve(existsSync(join(folder, 'here')) || undefined))
  const mark = (await first.store.read(attemptsOf, id))[0]!.mark
  const runsOn = () => processesWith(mark).length > 0
  /** Beyond its lease, and then the database cannot be asked: it stops what it takes for its own. */
  const comesBack = async () => {
    first.cut()
    clock.pause(4 * LEASE_MS)
    await until('it stops its commands', async () => {
      clock.advance(LEASE_MS / 15)
      await new Promise((resolve) => setTimeout(resolve, 5))
      return first.warnings.some((line) => line.includes('could not be renewed in time')) || undefined
    })
  }
  const takenBy = ({ worker }: Awaited<ReturnType<typeof workerOn>>) =>
    until('it is taken over', async () => ((await worker.recover(id)).length > 0 ? true : undefined))
  const ended = (store: Store) =>
    until('it ends', async () => {
      const run = await reread(store, id)
      return isTerminal(run.state) ? run : undefined
    })
  const ledger = () => readFileSync(join(folder, 'ledger.txt'), 'utf8')
  const isHeld = (fence: number) =>
    until('it is in other hands', () =>
      Promise.resolve(readdirSync(commandFolder(first.home, mark)).includes(`holder-${fence}`) || undefined),
    )
  const letGo = () => writeFileSync(join(folder, 'go'), '')
  return { database, id, first, runsOn, comesBack, takenBy, ended, ledger, isHeld, letGo }
}

describe('a worker that was paused beyond its lease, and cannot ask when it comes back', () => {
  test('does not stop the command that another one on its host has taken over [runs/fenced]', async () => {
    const { database, first, takenBy, isHeld, comesBack, letGo, ended, ledger } = await begun(postgres)
    const second = await workerOn(database, systemClock, LONG_MS)
    await takenBy(second)
    await isHeld(2)
    await comesBack()
    letGo()
    expect(await ended(second.store)).toMatchObject({ state: 'succeeded', attempt: 2 })
    expect(ledger()).toBe('done\n')
    expect(first.warnings.join()).toContain('stopping its commands')
    await assertInvariants(second.store)
  })

  test('stops what nobody has taken over, and the run is said to be lost', async () => {
    const { database, runsOn, takenBy, comesBack, ended } = await begun(postgres)
    expect(runsOn()).toBe(true)
    await comesBack()
    await until('its processes are gone', () => Promise.resolve(!runsOn() || undefined))
    const second = await workerOn(database, systemClock, LONG_MS)
    await takenBy(second)
    const lost = { state: 'failed', code: 'lost', error: 'stopped because its worker lost the claim' }
    expect(await ended(second.store)).toMatchObject(lost)
  })

  test("leaves a person's cancel to whoever has it now, and that one stops it", async () => {
    const { database, id, runsOn, takenBy, isHeld, comesBack, ended } = await begun(postgres)
    const second = await workerOn(database, systemClock, LONG_MS)
    await takenBy(second)
    await isHeld(2)
    await comesBack()
    await second.store.apply(cancelRun, id, { by: 'a person' })
    expect(await ended(second.store)).toMatchObject({ state: 'cancelled' })
    await until('its supervisor is gone too', () => Promise.resolve(!runsOn() || undefined))
  })
})

describe.each(engines)('on $name', (engine) => {
  test('a command that changed hands twice, between workers with homes of their own, is found and ends once [runs/paid-work-kept]', async () => {
    const { database, takenBy, letGo, ended, ledger } = await begun(engine)
    await takenBy(await workerOn(database, new FakeClock(), LEASE_MS))
    const third = await workerOn(database, systemClock, LONG_MS)
    await takenBy(third)
    letGo()
    expect(await ended(third.store)).toMatchObject({ state: 'succeeded', attempt: 3 })
    expect(ledger()).toBe('done\n')
    await assertInvariants(third.store)
  })
})
