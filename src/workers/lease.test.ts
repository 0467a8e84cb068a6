import { expect, test } from 'vitest'

import type { AttemptId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { Store } from '../store/store.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { Lease } from './lease.ts'

const LEASE_MS = 15_000
const attempt = (name: string) => name as AttemptId

/** A store whose only answer is to the renewal; the test decides what and when. */
function leaseWith(answer: () => Promise<readonly AttemptId[]>, held: AttemptId[]) {
  const clock = new FakeClock()
  const [lost, fenced]: [AttemptId[], number[]] = [[], []]
  const store = { apply: async () => (await answer()).map((id) => ({ id })) } as unknown as Store
  const lease = new Lease({
    store,
    clock,
    workerId: 'wrk' as WorkerId,
    leaseMs: LEASE_MS,
    held: () => held,
    onLost: (gone) => lost.push(...gone),
    onRenewed: () => {},
    onFenced: () => fenced.push(clock.monotonicMs()),
    warn: () => {},
  })
  return { clock, lease, lost, fenced }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Time passes as it does for a process that is awake: tick by tick, each with its answers. */
async function awake(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    clock.advance(500)
    await turn()
  }
}

test('what is claimed while a renewal is under way is not taken for lost', async () => {
  const held = [attempt('old'), attempt('gone')]
  let release: (still: readonly AttemptId[]) => void = () => {}
  const answer = new Promise<readonly AttemptId[]>((resolve) => (release = resolve))
  const { lease, lost } = leaseWith(() => answer, held)
  const renewal = lease.renew()
  held.push(attempt('new'))
  release([attempt('old')])
  await renewal
  expect(lost).toEqual(['gone'])
  lease.stop()
})

test('a worker that cannot renew stops its commands before the lease ends, once [runs/fenced]', async () => {
  const { clock, lease, fenced } = leaseWith(() => Promise.reject(new Error('no database')), [attempt('a')])
  await awake(clock, LEASE_MS * 2)
  expect(fenced).toHaveLength(1)
  expect(fenced[0]).toBeLessThan(LEASE_MS)
  lease.stop()
})

test('a lease counts from when its renewal was sent, however late that is answered [runs/fenced]', async () => {
  const sent: number[] = []
  const late = Promise.withResolvers<readonly AttemptId[]>()
  const answer = () => {
    sent.push(clock.monotonicMs())
    return sent.length === 1 ? late.promise : Promise.reject(new Error('no database'))
  }
  const { clock, lease, fenced } = leaseWith(answer, [attempt('a')])
  await awake(clock, LEASE_MS * 0.6)
  late.resolve([attempt('a')])
  await awake(clock, LEASE_MS)
  expect(fenced).toHaveLength(1)
  // It is looked at fifteen times a lease.
  expect(fenced[0]! - sent[0]!).toBeLessThanOrEqual(LEASE_MS * LIMITS.selfFenceShare + LEASE_MS / 15)
  lease.stop()
})

test('neither does a renewal that never answers keep it waiting', async () => {
  const { clock, lease, fenced } = leaseWith(() => new Promise(() => {}), [attempt('a')])
  await awake(clock, LEASE_MS)
  expect(fenced).toHaveLength(1)
  lease.stop()
})

test("a worker that was paused asks before it stops anything: its commands may be another worker's by now", async () => {
  const { clock, lease, lost, fenced } = leaseWith(() => Promise.resolve([]), [attempt('taken')])
  clock.pause(LEASE_MS * 4)
  await turn()
  expect(fenced).toEqual([])
  expect(lost).toEqual(['taken'])
  lease.stop()
})

test("after a pause it waits for the answer of a slow database before it stops what may be another worker's [runs/fenced]", async () => {
  let release: (still: readonly AttemptId[]) => void = () => {}
  const answer = new Promise<readonly AttemptId[]>((resolve) => (release = resolve))
  const { clock, lease, lost, fenced } = leaseWith(() => answer, [attempt('taken')])
  clock.pause(LEASE_MS * 4)
  await awake(clock, 3_000)
  expect(fenced).toEqual([])
  release([])
  await turn()
  expect(lost).toEqual(['taken'])
  lease.stop()
})

test('after a pause it does stop its commands if the database cannot be asked', async () => {
  const { clock, lease, fenced } = leaseWith(() => Promise.reject(new Error('no database')), [attempt('a')])
  clock.pause(LEASE_MS * 4)
  await awake(clock, 3_000)
  expect(fenced).toHaveLength(1)
  lease.stop()
})
