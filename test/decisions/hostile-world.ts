import { expect } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { Stage } from '../support/stage.ts'
import { HOSTILE } from './hostile.ts'

export const EVIL_THREAD = 'evil\u001b[2J\u202e\u200b\r thread' as ThreadId

/** What a model says: some of each, and not endless. */
export const WORDS = HOSTILE.filter(({ length }) => length < 400)
  .slice(0, 60)
  .join('')

/** Everything that an action can hold is hostile: its arguments, what it came to, what people and models say of it. */
export async function fill(store: Store) {
  const stage = new Stage(store)
  stage.threadId = EVIL_THREAD
  stage.policy = []
  const whole = Object.fromEntries(HOSTILE.map((text, index) => [`${index}`, text.toWellFormed()]))
  stage.replies = [
    {
      text: WORDS,
      calls: [
        ...HOSTILE.map((entry) => ['shout', { entry }] as const),
        ...HOSTILE.slice(0, 60).map((name) => [name, {}] as const),
        ['shout', { entry: 'all of it', whole }],
      ],
    },
  ]
  const asking = (await stage.send(WORDS.toWellFormed().replaceAll('\0', ''), 'k')).runId!
  expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
  const approvals = await store.read(pendingApprovals, 1_000)
  expect(approvals.length).toBeGreaterThan(150)

  const other = new Stage(store)
  other.threadId = 'acting' as ThreadId
  other.doubts = 'park'
  let nth = 0
  other.perform = (entry) => {
    nth += 1
    if (nth % 3 === 0) return Promise.resolve({ kind: 'failed', error: entry })
    return nth % 3 === 1 ? Promise.reject(new Error(entry)) : Promise.resolve({ kind: 'done', result: { entry } })
  }
  other.replies = [{ text: WORDS, calls: HOSTILE.map((entry) => ['shout', { entry }] as const) }]
  const acting = (await other.send('go', 'k')).runId!
  expect(await other.run(await other.claim())).toEqual({ kind: 'left' })
  const doubts = await store.read(openDoubts, 1_000)
  expect(doubts.length).toBeGreaterThan(50)
  await store.apply(resolveDoubt, doubts[0]!.id, { kind: 'give-up', by: HOSTILE[2]!, why: HOSTILE[17]! })
  await store.apply(resolveDoubt, doubts[1]!.id, { kind: 'happened', by: 'ann', result: HOSTILE[3]! })
  const [denied] = approvals
  await store.apply(decideApproval, denied!.id, {
    kind: 'deny',
    digest: denied!.digest,
    by: `ann ${HOSTILE[1]}`,
    via: `test ${HOSTILE[16]}`,
    note: HOSTILE[0]!,
  })
  return {
    asking,
    acting,
    /** Nobody has decided these; a test may. */
    decided: approvals.slice(20, 30).map(({ id }) => id),
    approvals: [approvals.at(-1)!.id, ...approvals.slice(0, 12).map(({ id }) => id)],
    doubts: doubts.slice(0, 12).map(({ id }) => id),
  }
}

export type HostileWorld = Awaited<ReturnType<typeof fill>>
