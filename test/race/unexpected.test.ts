import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, onTestFinished, test } from 'vitest'

import { newAttemptId, newRunId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { thisPlace } from '../../src/processes/identity.ts'
import { recordStarting, takeoversOf } from '../../src/runs/attempt.ts'
import { callOne, claimCalls, openCalls } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { isTerminal } from '../../src/runs/run.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import type { Store } from '../../src/store/store.ts'
import { commandFolder } from '../../src/workers/home.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import { oneWorker } from '../support/one-worker.ts'
import { Installation, processesWith, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LEASE_MS, claim, reread, someIdentity, submitted } from '../support/world.ts'

describe.each(engines)('a defect while a run is carried out, on $name', (engine) => {
  test('does not wedge the run: its worker lets go of it and it is recovered', async () => {
    const store = await (await engine.database()).open()
    let failures = 2
    const apply: Store['apply'] = (change, ...args) => {
      const isStart = (change as unknown) === recordStarting
      if (isStart && failures-- > 0)
        return Promise.reject(Object.assign(new Error('a defect'), { code: 'store/closed' }))
      return store.apply(change, ...args)
    }
    const place = new Installation()
    const [program, ...args] = place.append('once')
    const { id } = await submitted(store, { request: { kind: 'command', argv: [program!, ...args], cwd: '/' } })
    const worker = await oneWorker({ ...storeMethods(store), apply })
    await worker.start()
    await until('the run has ended', async () => {
      await worker.tend()
      return isTerminal((await reread(store, id)).state) ? true : undefined
    })
    expect(await reread(store, id)).toMatchObject({ state: 'succeeded' })
    expect(place.effects()).toEqual(['once'])
    await worker.drain(0)
    await assertInvariants(store)
  })

  test('does not keep a worker from starting: what others lost is looked for again', async () => {
    const store = await (await engine.database()).open()
    let failures = 1
    const read: Store['read'] = (look, ...args) => {
      const isLook = (look as unknown) === heldAttempts
      if (isLook && failures-- > 0) return Promise.reject(new Error('the network is gone'))
      return store.read(look, ...args)
    }
    const place = new Installation()
    const [program, ...args] = place.append('once')
    const { id } = await submitted(store, { request: { kind: 'command', argv: [program!, ...args], cwd: '/' } })
    const apply: Store['apply'] = (change, ...given) => store.apply(change, ...given)
    const worker = await oneWorker({ ...storeMethods(store), apply, read })
    await worker.start()
    expect(failures).toBe(0)
    await until('the run has ended', async () => isTerminal((await reread(store, id)).state) || undefined)
    expect(place.effects()).toEqual(['once'])
    await worker.drain(0)
  })
})

/** A command that was taken over as often as it may be, is at work, and with which no worker can go on. */
async function stuck(store: Store) {
  const { id } = await submitted(store)
  const [home, workerId] = [join(temporaryFolder(), 'home'), newWorkerId(random)]
  const identity = { ...thisPlace(), pid: 1, startTime: 1 }
  await store.apply(registerWorker, { id: workerId, kind: 'command', home, identity })
  const { run, attempt } = (await claim(store, workerId, {}, id))!
  await store.apply(recordStarting, { id: attempt.id, runId: id, fence: run.fence })
  const takenOver = async () => {
    const [held] = await store.read(heldAttempts)
    const taker = { workerId, leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    await store.apply(takeOverRun, held!, 'owner-dead', taker)
  }
  for (let takeover = 0; takeover < LIMITS.recoveries; takeover += 1) await takenOver()
  // Whatever it is that keeps them from it: here its supervisor is said to be where nobody can look.
  const folder = commandFolder(home, attempt.mark)
  mkdirSync(folder, { recursive: true })
  const elsewhere = { kind: 'supervisor', identity: someIdentity(), mark: attempt.mark, cgroup: null }
  writeFileSync(join(folder, 'owner.json'), JSON.stringify(elsewhere))
  const command = spawn('sleep', ['300'], { stdio: 'ignore', env: { ...process.env, HOLDFAST_MARK: attempt.mark } })
  onTestFinished(() => void command.kill('SIGKILL'))
  return { id, takenOver, isAtWork: () => processesWith(attempt.mark).length > 0 }
}

describe.each(engines)('a run that could not be carried out again and again, on $name', (engine) => {
  test('is given up when nothing of its command runs any more [control/stop-means-stopped]', async () => {
    const store = await (await engine.database()).open()
    const { id, isAtWork } = await stuck(store)
    const worker = await oneWorker(store)
    await worker.recover()
    await worker.settled()
    expect(await reread(store, id)).toMatchObject({ state: 'failed', code: 'internal' })
    expect(isAtWork()).toBe(false)
    await worker.drain(0)
    await assertInvariants(store)
  })

  test('is not given up, nor its command ended, by a worker that has lost it [runs/fenced]', async () => {
    const store = await (await engine.database()).open()
    const { id, isAtWork, takenOver } = await stuck(store)
    const read: Store['read'] = async (look, ...args) => {
      if ((look as unknown) === takeoversOf) await takenOver()
      return store.read(look, ...args)
    }
    const worker = await oneWorker({
      ...storeMethods(store),
      apply: (change, ...args) => store.apply(change, ...args),
      read,
    })
    await worker.recover()
    await worker.settled()
    expect([(await reread(store, id)).state, isAtWork()]).toEqual(['running', true])
    await worker.drain(0)
  })
})

describe.each(engines)('a worker that stops while it is claiming calls, on $name', (engine) => {
  test('gives back what the answer brings when its grace is over: nobody would renew it', async () => {
    const store = await (await engine.database()).open()
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const apply: Store['apply'] = async (change, ...args) => {
      const answer = await store.apply(change, ...args)
      const calls = (change as unknown) === claimCalls ? (answer as readonly unknown[]) : []
      if (calls.length === 0) return answer
      asked.resolve()
      await answered.promise
      return answer
    }
    let carriedOut = 0
    const body = () => Promise.resolve((carriedOut += 1))
    const worker = await oneWorker({ ...storeMethods(store), apply }, new Map([['adder', { name: 'adder', body }]]))
    await store.apply(openCalls, 'adder')
    await store.apply(callOne, { id: newRunId(random), agent: 'adder', input: '1' })
    await worker.start()
    await asked.promise
    expect(await worker.drain(0)).toEqual({ handedOver: 0 })
    answered.resolve()
    const given = await until('it is given back', async () => {
      const [held] = await store.read(heldAttempts)
      return held === undefined || held.releasedAt === null ? undefined : held
    })
    expect([given.workerId, carriedOut]).toEqual([worker.id, 0])
    await assertInvariants(store)
  })
})

describe.each(engines)('a call whose function left the program, on $name', (engine) => {
  test('waits for a program that has it, and ends when it is cancelled', async () => {
    const store = await (await engine.database()).open()
    const begun = Promise.withResolvers<void>()
    const body = () => {
      begun.resolve()
      return new Promise<never>(() => {})
    }
    const before = await oneWorker(store, new Map([['adder', { name: 'adder', body }]]))
    await store.apply(openCalls, 'adder')
    const id = newRunId(random)
    await store.apply(callOne, { id, agent: 'adder', input: '1' })
    await before.start()
    await begun.promise
    expect(await before.drain(0)).toEqual({ handedOver: 1 })
    const after = await oneWorker(store)
    await after.recover()
    expect((await reread(store, id)).state).toBe('running')
    await store.apply(cancelRun, id, { by: 'somebody' })
    expect((await after.recover()).map(({ run }) => run.id)).toEqual([id])
    await after.settled()
    expect((await reread(store, id)).state).toBe('cancelled')
    await after.drain(0)
    await assertInvariants(store)
  })
})

const storeMethods = (store: Store): Omit<Store, 'apply'> => ({
  engine: store.engine,
  read: (look, ...args) => store.read(look, ...args),
  onChange: (listener) => store.onChange(listener),
  check: () => store.check(),
  warmUp: () => store.warmUp(),
  copyTo: (path) => store.copyTo(path),
  close: () => store.close(),
})
