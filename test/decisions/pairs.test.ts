import { expect, test } from 'vitest'

import { decideApproval, expireApprovals } from '../../src/actions/decide.ts'
import type { Approval } from '../../src/actions/approval.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Store } from '../../src/store/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run, single } from '../../src/store/transition.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { refOf } from '../../src/workers/execute.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, results } from '../support/stage.ts'
import { answer, waitingIn } from './waiting.ts'

/** What can become of a write, what its model is told, and whether it happened. */
const FATES = {
  succeeds: { state: 'done', told: /^did /, happens: true },
  fails: { state: 'failed', told: /^failed: no paper/, happens: false },
  'is skipped': { state: 'skipped', told: /^skipped: /, happens: false },
  'is denied': { state: 'denied', told: /^denied: /, happens: false },
  expires: { state: 'expired', told: /^expired: nobody answered/, happens: false },
  'is in doubt': { state: 'failed', told: /^failed: it did not happen, as ann/, happens: false },
} as const
type Fate = keyof typeof FATES

const EACH = Object.keys(FATES) as Fate[]
const PAIRS = EACH.flatMap((one) => EACH.map((other) => [one, other] as const))

/** Its own time runs out, and nobody else's. */
const runOut = single((id: string) => run(sql`update approvals set expires_at = 1 where id = ${id}`))

async function decide(store: Store, approval: Approval, fate: Fate): Promise<void> {
  if (fate === 'expires') {
    await store.apply(runOut, approval.id)
    await store.apply(expireApprovals, 10)
    return
  }
  const kind = fate === 'is skipped' ? 'skip' : fate === 'is denied' ? 'deny' : 'approve'
  await store.apply(decideApproval, approval.id, answer(kind, approval.digest))
}

/** Each pair in a thread of its own. */
async function carryOut(store: Store, clock: FakeClock, [one, other]: readonly [Fate, Fate]): Promise<void> {
  const stage = new Stage(store)
  stage.policy = []
  stage.doubts = 'park'
  stage.threadId = `one ${one}, the other ${other}` as ThreadId
  const { runId, approvals } = await waitingIn({ stage, store, clock }, ['one', 'other'])
  const fateOf = (entry: string) => (entry === 'one' ? one : other)
  stage.perform = (entry) => {
    if (fateOf(entry) === 'is in doubt') return Promise.reject(new Error('cut'))
    if (fateOf(entry) === 'fails') return Promise.resolve({ kind: 'failed', error: 'no paper' })
    return Promise.resolve({ kind: 'done', result: `did ${entry}` })
  }
  await decide(store, approvals[0]!, one)
  const untouched = (await stage.actionsOf(runId))[1]!
  expect(untouched).toMatchObject({ state: 'waiting', decision: null, error: null, startedAt: null })
  // The one is carried out, as far as it can be, while the other waits.
  expect(await stage.run(await stage.claim())).toEqual({ kind: 'left' })
  expect((await stage.actionsOf(runId))[1]).toEqual(untouched)
  await decide(store, approvals[1]!, other)
  await end(stage)
  const fates = [FATES[one], FATES[other]]
  expect((await stage.actionsOf(runId)).map(({ state }) => state)).toEqual(fates.map(({ state }) => state))
  const told = results(stage.asked.at(-1)!)
  expect(told).toHaveLength(2)
  for (const [index, { told: words }] of fates.entries()) expect(told[index]).toMatch(words)
  expect(stage.effects).toEqual(['one', 'other'].filter((_, index) => fates[index]!.happens))
}

/** A person settles what is in doubt. */
async function end(stage: Stage): Promise<void> {
  const { store } = stage
  let claim = await stage.claim()
  let ended = await stage.run(claim)
  if (ended.kind === 'left') {
    for (const { id } of await store.read(openDoubts, 10))
      await store.apply(resolveDoubt, id, { kind: 'did-not-happen', by: 'ann' })
    claim = await stage.claim()
    ended = await stage.run(claim)
  }
  if (ended.kind !== 'finished') throw new Error(ended.kind)
  expect(await store.apply(finishRun, refOf(claim), ended.outcome)).toMatchObject({ run: { state: 'succeeded' } })
}

test.each(engines)(
  'two writes in one turn, whatever becomes of each: neither touches the other, on $name [W1] [W3]',
  async (engine) => {
    const clock = new FakeClock()
    const store = await (await engine.database()).open({ clock })
    for (const pair of PAIRS) await carryOut(store, clock, pair)
    expect(PAIRS).toHaveLength(36)
    await assertInvariants(store)
  },
)
