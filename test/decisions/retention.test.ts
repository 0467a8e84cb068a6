import { describe, expect, test } from 'vitest'

import { forgetMarks } from '../../src/actions/window.ts'
import type { RunId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { dueNotices, forgetNotices, queueNotices, settleNotice, tryNotice } from '../../src/notify/notice.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { integer, row } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { one, single } from '../../src/store/transition.ts'
import { refOf } from '../../src/workers/execute.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { strict, waiting } from './waiting.ts'

const A_DAY = 86_400_000
const countRow = row({ count: integer })
const counted = single((what: Sql) => one(countRow, sql`select count(*) as count from ${what}`))
const count = async (store: Store, what: Sql) => (await store.read(counted, what)).count
const MARKS = sql`once_marks`

/** Of an agent that does the same in each of its runs, and may do it once a day. */
async function daily(engine: TestEngine) {
  const world = await strict(engine)
  const { stage } = world
  stage.policy = [{ decision: 'allow' }]
  stage.once = { per: 'agent', withinMs: A_DAY }
  stage.replies = Array.from(
    { length: 9 },
    () => [{ calls: [['append', { entry: 'a' }]] }, { text: 'Done.' }] as const,
  ).flat()
  let sent = 0
  const begin = async () => {
    sent += 1
    await stage.send(`go ${sent}`)
    return stage.claim()
  }
  const oneRun = async (): Promise<RunId> => {
    const claim = await begin()
    await stage.finished(claim)
    return claim.run.id
  }
  return { ...world, begin, oneRun }
}

describe.each(engines)('what is forgotten, on $name', (engine) => {
  test('a notice, a month after it was sent or given up; never one that is still to be told', async () => {
    const { store, clock } = await waiting(engine, ['a'])
    await store.apply(queueNotices, ['sent', 'given up', 'to be told'])
    for (const notice of await store.read(dueNotices, 10)) {
      if (notice.channel === 'to be told') continue
      const tried = (await store.apply(tryNotice, notice))!
      const tries = notice.channel === 'sent' ? 1 : LIMITS.noticeTries
      let last = tried
      for (let nth = 1; nth < tries; nth++) last = (await store.apply(tryNotice, last))!
      await store.apply(settleNotice, last, notice.channel === 'sent' ? undefined : 'status 500')
    }
    const NOTICES = sql`notices`
    clock.step(LIMITS.messagesKeptMs - 1)
    expect(await store.apply(forgetNotices, 10)).toBe(0)
    clock.step(1)
    expect(await store.apply(forgetNotices, 1)).toBe(1)
    expect(await store.apply(forgetNotices, 10)).toBe(1)
    expect(await count(store, NOTICES)).toBe(1)
    expect(await store.read(dueNotices, 10)).toMatchObject([{ channel: 'to be told' }])
    // What was looked at is not told again because nothing is left of it.
    expect(await store.apply(queueNotices, ['sent', 'given up'])).toBeLessThan(LIMITS.page)
    expect(await count(store, NOTICES)).toBe(1)
    await assertInvariants(store)
  })

  test('whose turn it was, a month after its window was over; until then the call is answered', async () => {
    const { stage, store, clock, oneRun } = await daily(engine)
    await oneRun()
    clock.step(A_DAY - 1)
    expect(await store.apply(forgetMarks, 10)).toBe(0)
    await oneRun()
    expect(stage.effects).toEqual(['a'])
    // Somebody made the window longer in the meantime.
    clock.step(LIMITS.messagesKeptMs)
    expect(await store.apply(forgetMarks, 10)).toBe(0)
    stage.once = { per: 'agent', withinMs: 365 * A_DAY }
    await oneRun()
    expect(stage.effects).toEqual(['a'])
    stage.once = { per: 'agent', withinMs: A_DAY }
    clock.step(1)
    expect(await store.apply(forgetMarks, 10)).toBe(1)
    expect(await count(store, MARKS)).toBe(0)
    await oneRun()
    expect(stage.effects).toEqual(['a', 'a'])
    await assertInvariants(store)
  })

  test('one that was taken again counts from then on; one whose call is still under way stays', async () => {
    const { stage, store, clock, oneRun, begin } = await daily(engine)
    await oneRun()
    clock.step(A_DAY + LIMITS.messagesKeptMs)
    await oneRun()
    expect(stage.effects).toEqual(['a', 'a'])
    expect(await store.apply(forgetMarks, 10)).toBe(0)
    clock.step(A_DAY)
    const claim = await begin()
    const answer = Promise.withResolvers<{ kind: 'done'; result: string }>()
    const begun = Promise.withResolvers<void>()
    stage.perform = () => {
      begun.resolve()
      return answer.promise
    }
    const running = stage.run(claim)
    await begun.promise
    clock.step(A_DAY + LIMITS.messagesKeptMs)
    expect(await store.apply(forgetMarks, 10)).toBe(0)
    answer.resolve({ kind: 'done', result: 'at last' })
    const end = await running
    if (end.kind !== 'finished') throw new Error(end.kind)
    await store.apply(finishRun, refOf(claim), end.outcome)
    expect(await store.apply(forgetMarks, 10)).toBe(1)
    await assertInvariants(store)
  })
})
