import { describe, expect, test } from 'vitest'

import type { ThreadId } from '../../src/base/ids.ts'
import { livingOf } from '../../src/schedule/job.ts'
import type { Store } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { results } from '../support/stage.ts'
import { asJson, staged } from './agent-tools.ts'
import { ScheduleWorld } from './support.ts'

/** A store whose process dies when its nth change is stored: nobody ever hears of that, or of anything again. */
function dying(store: Store, nth: number) {
  let changes = 0
  let die = () => {}
  const death = new Promise<'died'>((resolve) => (die = () => resolve('died')))
  const never = () => {
    die()
    return new Promise<never>(() => {})
  }
  const apply = async (...args: readonly unknown[]) => {
    changes += 1
    if (changes > nth) return never()
    const result = await (store.apply as (...all: readonly unknown[]) => Promise<unknown>).apply(store, [...args])
    return changes === nth ? never() : result
  }
  const doomed = new Proxy(store, {
    get(target, key) {
      if (key === 'apply') return apply
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value as (...all: unknown[]) => unknown).bind(target) : value
    },
  })
  return { doomed, death }
}

const callsOf = (job: string) =>
  [
    ['schedule_followup', { delay_seconds: 60, prompt: 'first' }],
    ['schedule_followup', { delay_seconds: 120, prompt: 'second' }],
    ['manage_jobs', { action: 'create', name: job, every: '10m', prompt: 'look around' }],
  ] as const

/** Two replies, and three actions with their intent, their effect and their outcome. */
const CHANGES = 2 + 3 * 3

interface Told {
  readonly id: string
  readonly replaced?: { readonly id: string }
}

/** Dies at this change, and is taken over. Undefined: there are not that many changes. */
async function dieAt(world: ScheduleWorld, nth: number): Promise<readonly Told[] | undefined> {
  const thread = `after-${nth}` as ThreadId
  const { doomed, death } = dying(world.store, nth)
  const [first, second] = [
    staged({ store: doomed, clock: world.clock, thread }),
    staged({ store: world.store, clock: world.clock, thread }),
  ]
  const replies = [{ calls: callsOf(thread) }, { text: 'done' }]
  first.replies = second.replies = replies
  await second.send('go', thread)
  const claim = await second.claim()
  const end = await Promise.race([first.run(claim), death])
  if (end !== 'died') return undefined
  const taken = await second.takeOver(claim)
  expect(await second.finished(taken)).toMatchObject({ state: 'succeeded' })
  // All was told when it died at its last word: nobody is asked again.
  const shown = second.asked.at(-1) ?? first.asked.at(-1)
  return results(shown!).map(asJson) as Told[]
}

describe.each(engines)('an agent that is killed at any change on $name', (engine) => {
  test('what it asked for is there once, and what took the place of what is told all the same [actions/once]', async () => {
    const world = await ScheduleWorld.open(engine)
    // Before the first of them nothing has happened.
    for (let nth = 1; nth <= CHANGES; nth += 1) {
      const where = `after-${nth}`
      const [first, second, job] = (await dieAt(world, nth)) ?? []
      const living = async (kind: 'followup' | 'job') =>
        (await world.store.read(livingOf, where as ThreadId, kind, 10)).map(({ id }) => id)
      expect(second?.replaced?.id, where).toBe(first?.id)
      expect([await living('followup'), await living('job')], where).toEqual([[second?.id], [job?.id]])
    }
    expect(await dieAt(world, CHANGES + 1)).toBeUndefined()
    await assertInvariants(world.store)
  }, 60_000)
})
