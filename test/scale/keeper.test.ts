import { test } from 'vitest'

import { systemRandomness as random } from '../../src/base/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { Keeper } from '../../src/workers/history/keeper.ts'
import { engines } from '../support/engines.ts'

test('who forgets and was paused meanwhile does not hold up the end of its daemon', async () => {
  const clock = new FakeClock()
  const inner = await (await engines[0]!.database()).open({ clock })
  const { promise: paused, resolve: pause } = Promise.withResolvers<void>()
  let isPaused = false
  const read: Store['read'] = async (...look) => {
    const answer = await inner.read(...look)
    // It has worked for an hour, by the clock, and would rest for four.
    if (!isPaused) clock.advance(3_600_000)
    isPaused = true
    pause()
    return answer
  }
  const { engine } = inner
  const store: Store = {
    engine,
    read,
    apply: (change, ...args) => inner.apply(change, ...args),
    onChange: (listener) => inner.onChange(listener),
    check: () => inner.check(),
    warmUp: () => inner.warmUp(),
    copyTo: (path) => inner.copyTo(path),
    close: () => inner.close(),
  }
  const keeper = new Keeper({ store, clock, random, warn: () => {}, cut: { runsMs: 86_400_000 } })
  const looked = keeper.look({ holds: async () => true })
  await paused
  await keeper.stop()
  await looked
})
