import { describe, expect, test } from 'vitest'

import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { systemClock } from '../../src/base/clock.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { endRivals } from '../../src/workers/rivals.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { strict } from './waiting.ts'

/** A write that was begun on `host-a`, which nobody here can look at, and taken over. */
async function inDoubt(engine: TestEngine) {
  const { stage, store } = await strict(engine)
  stage.policy = [{ decision: 'allow' }]
  stage.doubts = 'park'
  stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Done.' }]
  stage.perform = () => Promise.reject(new Error('cut'))
  const { runId } = await stage.send('go')
  expect(await stage.run(await stage.takeOver(await stage.claim()))).toEqual({ kind: 'left' })
  const [doubt] = await store.read(openDoubts, 10)
  const rivals = () => endRivals(store, systemClock, runId!)
  return { stage, store, doubt: doubt!, rivals }
}

describe.each(engines)('a write that was begun on a machine that cannot be reached, on $name', (engine) => {
  test('is not done again before a person says that who had begun it is dead; that is on record [actions/no-blind-retry]', async () => {
    const { stage, store, doubt, rivals } = await inDoubt(engine)
    expect(await rivals()).toContain('a process on host-a, which cannot be reached, had begun it')
    const again = { kind: 'run-again', by: 'ann' } as const
    expect(await store.apply(resolveDoubt, doubt.id, { ...again, deadHost: 'host-b' })).toEqual({
      kind: 'other-hosts',
      hosts: ['host-a'],
    })
    expect(await store.read(openDoubts, 10)).toHaveLength(1)
    expect(await store.apply(resolveDoubt, doubt.id, { ...again, deadHost: 'host-a' })).toMatchObject({
      kind: 'resolved',
    })
    expect(await rivals()).toBeUndefined()
    const resolved = (await store.read(eventsAfter, 0, 100)).filter(({ type }) => type === 'doubt.resolved')
    expect(resolved).toMatchObject([{ data: { resolution: 'run-again', by: 'ann', deadHost: 'host-a' } }])
    stage.perform = (entry) => Promise.resolve({ kind: 'done', result: `did ${entry}` })
    await stage.finished(await stage.claim())
    expect(stage.effects).toEqual(['a'])
    await assertInvariants(store)
  })

  test('without that word it stays where it is', async () => {
    const { store, doubt, rivals } = await inDoubt(engine)
    await store.apply(resolveDoubt, doubt.id, { kind: 'run-again', by: 'ann' })
    expect(await rivals()).toContain('--dead-host host-a')
  })
})
