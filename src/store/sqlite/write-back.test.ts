import { statSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test, vi } from 'vitest'

import { temporaryFolder } from '../../../test/support/engines.ts'
import { LIMITS } from '../../base/limits.ts'
import { record } from '../../events/event.ts'
import { FakeClock } from '../../testing/fake-clock.ts'
import { openSqliteStore } from './store.ts'
import { WriteBack } from './write-back.ts'

function writing() {
  const clock = new FakeClock()
  const write = vi.fn<() => void>()
  return { clock, write, back: new WriteBack(clock, write) }
}

const MANY = LIMITS.restLogPages

test('a log that has become long is written back once nobody has committed anything for a while', () => {
  const { clock, write, back } = writing()
  for (let n = 0; n < MANY; n += 1) back.committed(1)
  clock.advance(LIMITS.restMs - 1)
  back.committed(1)
  clock.advance(LIMITS.restMs - 1)
  expect(write).not.toHaveBeenCalled()
  clock.advance(1)
  expect(write).toHaveBeenCalledTimes(1)
  clock.advance(100 * LIMITS.restMs)
  expect(write).toHaveBeenCalledTimes(1)
})

test('a short one waits for more', () => {
  const { clock, write, back } = writing()
  for (let n = 0; n < 10; n += 1) back.committed(1)
  clock.advance(100 * LIMITS.restMs)
  expect(write).not.toHaveBeenCalled()
  for (let n = 0; n < 10; n += 1) back.committed(MANY)
  clock.advance(LIMITS.restMs)
  expect(write).toHaveBeenCalledTimes(1)
})

test('whoever closes leaves it to SQLite', () => {
  const { clock, write, back } = writing()
  for (let n = 0; n < MANY; n += 1) back.committed(1)
  back.close()
  clock.advance(100 * LIMITS.restMs)
  expect(write).not.toHaveBeenCalled()
})

test('a store writes its log back when it rests, and not while it is at work', async () => {
  const path = join(temporaryFolder(), 'holdfast.db')
  const store = await openSqliteStore({ path })
  const data = { text: 'x'.repeat(2_000) }
  const note = () => store.apply(record, { type: 'operator.acted', data })
  const commitSome = async (commits: number) => {
    for (let n = 0; n < commits; n += 1) await Promise.all(Array.from({ length: 8 }, note))
  }
  const size = () => statSync(path).size
  const before = size()
  await commitSome(20)
  // Within the log: it is a long way to what SQLite itself waits for.
  expect(size()).toBe(before)
  await commitSome(140)
  await expect.poll(size, { timeout: 10_000 }).toBeGreaterThan(1_000_000)
  await store.close()
})
