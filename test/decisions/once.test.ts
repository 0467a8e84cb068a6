import { describe, expect, test } from 'vitest'

import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { OnceWindow } from '../../src/actions/window.ts'
import { releaseAction } from '../../src/actions/window.ts'
import type { ActionId, RunId, ThreadId } from '../../src/base/ids.ts'
import { startAction } from '../../src/actions/perform.ts'
import type { Now, Start } from '../../src/actions/perform.ts'
import { versionOf } from '../../src/loop/version.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import type { Transition } from '../../src/store/transition.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { TestEngine } from '../support/engines.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { results } from '../support/stage.ts'
import { refOf } from '../../src/workers/execute.ts'
import { answer, strict } from './waiting.ts'

const HOUR = 3_600_000
const DAILY: OnceWindow = { per: 'agent', withinMs: 24 * HOUR }

async function world(engine: TestEngine, once: OnceWindow | 'none' = DAILY) {
  const made = await strict(engine)
  const { stage } = made
  stage.policy = [{ decision: 'allow' }]
  stage.once = once === 'none' ? undefined : once
  stage.replies = [{ calls: [['append', { entry: 'a' }]] }, { text: 'Done.' }]
  let sent = 0
  /** Another thread whose agent does the same. */
  const claimed = async (thread: string): Promise<Claim> => {
    stage.threadId = thread as ThreadId
    sent += 1
    const { runId } = await stage.send(`go ${sent}`)
    const claim = await stage.claim()
    expect(claim.run.id).toBe(runId)
    return claim
  }
  const oneRun = async (thread: string): Promise<RunId> => {
    const claim = await claimed(thread)
    await stage.finished(claim)
    return claim.run.id
  }
  return { ...made, claimed, oneRun }
}

/**
 * Two starts as one transaction. Side by side, the second so many statements behind the first; or the first stops after so
 * many, and goes on when the second has ended.
 */
function* interleaved(
  how: 'side by side' | 'overtaken',
  statements: number,
  starts: readonly (readonly [AttemptRef, ActionId, Now])[],
): Transition<Start['kind'][]> {
  const steps = starts
    .map((args) => startAction(...args))
    .map((transition) => ({ transition, next: transition.next() }))
  const [first, second] = steps
  for (let round = 0; steps.some(({ next }) => next.done !== true); round++) {
    for (const step of steps) {
      const waits =
        how === 'side by side'
          ? step === second && round < statements
          : step === first && round >= statements && second?.next.done !== true
      // Overtaken: the second begins where the first stops.
      const tooEarly = how === 'overtaken' && step === second && round < statements && first?.next.done !== true
      if (step.next.done === true || waits || tooEarly) continue
      step.next = step.transition.next(yield step.next.value)
    }
  }
  return steps.map(({ next }) => (next.value as Start).kind)
}

const told = (stage: { asked: readonly Parameters<typeof results>[0][] }) => results(stage.asked.at(-1)!).at(-1)

describe.each(engines)('a write that is not to happen again within a day, on $name', (engine) => {
  test('an identical call of another run is answered from it and says so, until the day is over [W2]', async () => {
    const { stage, store, clock, oneRun } = await world(engine)
    await oneRun('one')
    clock.step(23 * HOUR)
    const second = await oneRun('two')
    expect(stage.effects).toEqual(['a'])
    expect(told(stage)).toMatch(/^\(the same as an earlier call, which was not performed again; .*\)\ndid a$/)
    const [repeat] = await stage.actionsOf(second)
    expect(repeat).toMatchObject({ state: 'done', settledBy: 'repeat', result: 'did a', startedAt: null })
    expect(repeat!.repeatOf).not.toBeNull()
    clock.step(HOUR)
    await oneRun('three')
    expect(stage.effects).toEqual(['a', 'a'])
    await oneRun('four')
    expect(stage.effects).toEqual(['a', 'a'])
    await assertInvariants(store)
  })

  test('of a thread: another thread is not meant', async () => {
    const { stage, oneRun } = await world(engine, { per: 'thread', withinMs: 24 * HOUR })
    stage.replies = [...stage.replies, ...stage.replies]
    await oneRun('one')
    await oneRun('two')
    expect(stage.effects).toEqual(['a', 'a'])
    await oneRun('one')
    expect(stage.effects).toEqual(['a', 'a'])
  })

  test('without a window each run is its own', async () => {
    const { stage, oneRun } = await world(engine, 'none')
    await oneRun('one')
    await oneRun('two')
    expect(stage.effects).toEqual(['a', 'a'])
  })

  test('one that certainly failed holds nobody back; one in doubt does, until a person settles it', async () => {
    const { stage, store, oneRun } = await world(engine)
    stage.perform = () => Promise.resolve({ kind: 'failed', error: 'no paper' })
    await oneRun('one')
    stage.perform = () => Promise.reject(new Error('cut'))
    await oneRun('two')
    stage.perform = (entry) => Promise.resolve({ kind: 'done', result: `did ${entry}` })
    await oneRun('three')
    expect(stage.effects).toEqual([])
    expect(told(stage)).toContain('it may or may not have happened')
    const [doubt] = await store.read(openDoubts, 10)
    await store.apply(resolveDoubt, doubt!.id, { kind: 'did-not-happen', by: 'ann' })
    await oneRun('four')
    expect(stage.effects).toEqual(['a'])
  })

  test('many runs at the same time: one of them does it, the others are told', async () => {
    const { stage, store, claimed } = await world(engine)
    const claims: Claim[] = []
    for (let i = 0; i < 12; i++) claims.push(await claimed(`thread ${i}`))
    const ends = await Promise.all(claims.map((claim) => stage.run(claim)))
    for (const [index, end] of ends.entries()) {
      if (end.kind !== 'finished') throw new Error(end.kind)
      await store.apply(finishRun, refOf(claims[index]!), end.outcome)
    }
    expect(stage.effects).toEqual(['a'])
    const actions = (await Promise.all(claims.map((claim) => stage.actions(claim)))).flat()
    expect(actions.filter(({ repeatOf }) => repeatOf === null)).toMatchObject([{ state: 'done' }])
    expect(actions.filter(({ repeatOf }) => repeatOf !== null)).toHaveLength(11)
    await assertInvariants(store)
  })

  test('two that share one commit, their statements interleaved in any way: one of them begins', async () => {
    const { stage, store, claimed } = await world(engine)
    const ways = ['side by side', 'overtaken'] as const
    for (const [nth, how] of Array.from({ length: 24 }, (_, index) => [index >> 1, ways[index % 2]!] as const)) {
      const entry = `${how} ${nth}`
      stage.replies = [{ calls: [['append', { entry }]] }, { text: 'Done.' }]
      const claims = [await claimed(`left ${entry}`), await claimed(`right ${entry}`)]
      const proposed: ActionId[] = []
      for (const claim of claims) proposed.push(await stage.propose(claim, entry))
      const now: Now = { agent: 'clerk', policy: stage.policy, version: versionOf(stage.tool('append')), once: DAILY }
      const starts = claims.map((claim, index) => [refOf(claim), proposed[index]!, now] as const)
      const kinds = await store.apply(interleaved, how, nth, starts)
      expect(kinds.toSorted(), entry).toEqual(['settled', 'started'])
      for (const claim of claims) await store.apply(finishRun, refOf(claim), { state: 'succeeded' })
    }
    await assertInvariants(store)
  })

  test('nobody is asked about what will not be performed', async () => {
    const { stage, store, oneRun } = await world(engine)
    await oneRun('one')
    stage.policy = []
    await oneRun('two')
    expect(await store.read(pendingApprovals, 10)).toEqual([])
    expect(stage.effects).toEqual(['a'])
  })
})

describe.each(engines)('doing it again, on $name', (engine) => {
  test.each([
    ['in the same run', 'none'],
    ['across runs', DAILY],
  ] as const)(
    '%s: only when a person says so, once, recorded, and asked for afresh although a rule allows it',
    async (_title, once) => {
      const { stage, store, claimed } = await world(engine, once)
      const call = { calls: [['append', { entry: 'a' }]] } as const
      stage.replies = [call, call, call, call, { text: 'Done.' }]
      let first: Awaited<ReturnType<typeof stage.actionsOf>>[number] | undefined
      const claim = await claimed('one')
      const runId = claim.run.id
      // After the second call, which is answered from the first, a person releases it.
      stage.answer = (request) => {
        if (request.replies !== 2) return undefined
        return (async () => {
          first = (await stage.actionsOf(runId))[0]
          const repeat = (await stage.actionsOf(runId))[1]!
          expect(repeat.repeatOf).toBe(first!.id)
          expect(await store.apply(releaseAction, repeat.id, { by: 'ann', why: 'it got lost' })).toMatchObject({
            kind: 'released',
            action: { id: first!.id },
          })
          const toolCalls = [{ id: 'call_2_0', tool: 'append', input: { entry: 'a' } }]
          const usage = { inputTokens: 1, outputTokens: 1, costMicrousd: 0 }
          return { kind: 'replied', reply: { text: '', toolCalls, usage, finish: 'tool-calls' }, spent: usage }
        })()
      }
      expect(await stage.run(claim)).toEqual({ kind: 'left' })
      expect(stage.effects).toEqual(['a'])
      const [asked] = await store.read(pendingApprovals, 10)
      expect(asked!.askedBy).toContain('ann: it got lost')
      await store.apply(decideApproval, asked!.id, answer('approve', asked!.digest))
      await stage.finished(await stage.claim())
      // The fourth call is a repeat of the third: it was released once.
      expect(stage.effects).toEqual(['a', 'a'])
      const actions = await stage.actionsOf(runId)
      expect(actions[3]!.repeatOf).toBe(actions[2]!.id)
      await assertInvariants(store)
    },
  )

  test('what was not done, is in doubt, is under way or is done each time has nothing to release', async () => {
    const { stage, store, oneRun } = await world(engine, 'none')
    expect(await store.apply(releaseAction, 'act_none' as never, { by: 'ann' })).toEqual({ kind: 'unknown' })
    stage.perform = () => Promise.resolve({ kind: 'failed', error: 'no' })
    const [failed] = await stage.actionsOf(await oneRun('one'))
    expect(await store.apply(releaseAction, failed!.id, { by: 'ann' })).toMatchObject({ kind: 'not-held' })
    stage.perform = () => Promise.reject(new Error('cut'))
    const [doubtful] = await stage.actionsOf(await oneRun('two'))
    expect(await store.apply(releaseAction, doubtful!.id, { by: 'ann' })).toMatchObject({ kind: 'in-doubt' })
    await store.apply(resolveDoubt, doubtful!.id, { kind: 'give-up', by: 'ann' })
    expect(await store.apply(releaseAction, doubtful!.id, { by: 'ann' })).toMatchObject({ kind: 'released' })
    expect(await store.apply(releaseAction, doubtful!.id, { by: 'ann' })).not.toMatchObject({ kind: 'released' })
  })
})
