import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { engines, query } from '../support/engines.ts'
import { assertInvariants, comparable, comparableSnapshot } from '../support/invariants.ts'
import { printedChance } from '../support/seed.ts'
import { STEPS, someStep } from './steps.ts'
import type { Act, History, Step } from './steps.ts'

const SEQUENCES = process.env.HOLDFAST_DEEP === '1' ? 500 : 15
const STEPS_EACH = 20
const [sqlite, postgres] = engines

/** Workers and a claimed run, so that most of what comes after has something to do. */
const BEGINNING: readonly (Step & { passMs: number })[] = [
  ...[0, 1, 2].map((who) => ({ kind: 'register' as const, who, how: 1, passMs: 0 })),
  { kind: 'submit', who: 0, how: 1, passMs: 1 },
  { kind: 'submit', who: 1, how: 3, passMs: 1 },
  { kind: 'claim', who: 0, how: 1, passMs: 1 },
]

const outcomeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (answer) => ({ answer: comparable(answer) }),
    (error: unknown) => ({ error: (error as { code?: unknown }).code ?? String(error) }),
  )

/** One driver gives large integers as text, the other as numbers. */
async function contentOf(store: Store): Promise<unknown> {
  const content = await comparableSnapshot(store)
  return JSON.parse(JSON.stringify(content), (_, cell: unknown) => (typeof cell === 'number' ? String(cell) : cell))
}

async function expectSame(stores: readonly [Store, Store], act: Act, what: string): Promise<void> {
  const [left, right] = [await outcomeOf(act(stores[0])), await outcomeOf(act(stores[1]))]
  expect(right, `the answer to ${what}`).toEqual(left)
  expect(await contentOf(stores[1]), `the content after ${what}`).toEqual(await contentOf(stores[0]))
}

test('any history gives the same answers and the same content on SQLite and PostgreSQL', async () => {
  const clock = new FakeClock()
  const shared = await postgres!.database()
  const right = await shared.open({ clock })
  const schema = new URL(shared.url).searchParams.get('schema')!
  const tables = Object.keys(await comparableSnapshot(right)).map((table) => `${schema}.${table}`)
  const done = new Map<string, number>()
  const live = async (steps: readonly (Step & { passMs: number })[]) => {
    await query(shared.url, `truncate ${tables.join(', ')} cascade`)
    const left = await (await sqlite!.database()).open({ clock })
    let made = 0
    const history: History = { ids: () => ++made, runs: [], attempts: [] }
    for (const [at, step] of [...BEGINNING, ...steps].entries()) {
      clock.advance(step.passMs)
      const act = STEPS[step.kind](history, step)
      if (act === undefined) continue
      await expectSame([left, right], act, `step ${at}, ${JSON.stringify(step)}`)
      done.set(step.kind, (done.get(step.kind) ?? 0) + 1)
    }
    await assertInvariants(left)
    await assertInvariants(right)
    await left.close()
  }
  const history = fc.array(someStep, { minLength: STEPS_EACH, maxLength: STEPS_EACH })
  const { seed } = printedChance('histories')
  await fc.assert(fc.asyncProperty(history, live), { seed, numRuns: SEQUENCES })
  console.log(`${SEQUENCES} histories: ${[...done].map(([kind, count]) => `${count} ${kind}`).join(', ')}`)
  expect([...done.keys()].toSorted()).toEqual(Object.keys(STEPS).toSorted())
}, 1_200_000)
