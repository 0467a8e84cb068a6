import { describe, expect, test } from 'vitest'

import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import type { Store } from '../../src/store/store.ts'
import { concludeCheck, takeLanding } from '../../src/workspace/prepare.ts'
import { claimSettling, landedWorkspace } from '../../src/workspace/settle.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { LANDS, passed, settlingAfter, workingUpTo, workspaceOf } from '../support/workspaces.ts'
import { LEASE_MS, addWorker, reread } from '../support/world.ts'

const ROUNDS = process.env['HOLDFAST_DEEP'] === undefined ? 30 : 1_000
const person = { by: 'a person' }
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Both at once, each from a process of its own, one of them a little later from round to round. */
async function race<L, R>(round: number, left: () => Promise<L>, right: () => Promise<R>): Promise<[L, R]> {
  const late = Math.floor(round / 2) % 5
  return Promise.all([turns(round % 2 === 0 ? late : 0).then(left), turns(round % 2 === 0 ? 0 : late).then(right)])
}

describe.each(engines)('two processes on $name', (engine) => {
  const both = async (): Promise<[Store, Store]> => {
    const database = await engine.database()
    return [await database.open(), await database.open()]
  }

  test('cancel against success at the decision: the files are decided if and only if the run succeeded [X2] [runs/one-terminal]', async () => {
    const [mine, theirs] = await both()
    const ends: Record<string, number> = {}
    for (let round = 0; round < ROUNDS; round++) {
      const { ref } = await workingUpTo(mine, 'checked', { repo: `/repo/${round}` })
      await race(
        round,
        () => mine.apply(finishRun, ref, { state: 'succeeded' }),
        () => theirs.apply(cancelRun, ref.runId, person),
      )
      const [{ state }, workspace] = [await reread(mine, ref.runId), await workspaceOf(mine, ref.runId)]
      expect([state, workspace.state, workspace.landing]).toEqual(
        state === 'succeeded' ? ['succeeded', 'decided', true] : ['cancelled', 'discarding', false],
      )
      ends[state] = (ends[state] ?? 0) + 1
    }
    console.log(`cancel against success on ${engine.name}, ${ROUNDS} times:`, ends)
    await assertInvariants(mine)
  })

  test('a verdict against a takeover: it counts only with the claim it was made under [runs/fenced]', async () => {
    const [mine, theirs] = await both()
    for (let round = 0; round < ROUNDS / 2; round++) {
      const { ref, attempt } = await workingUpTo(mine, 'checking', { repo: `/repo/${round}` })
      const taker = { workerId: await addWorker(theirs), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
      const [verdict] = await race(
        round,
        () => mine.apply(concludeCheck, ref, LANDS, passed),
        () => theirs.apply(takeOverRun, { ...ref, mark: attempt.mark }, 'owner-dead', taker),
      )
      const { state } = await workspaceOf(mine, ref.runId)
      expect(state).toBe(verdict.kind === 'done' ? 'checked' : 'prepared')
    }
    await assertInvariants(mine)
  })

  test('two that want to land in one repository: one of them gets the lock, the other waits for it', async () => {
    const [mine, theirs] = await both()
    for (let round = 0; round < ROUNDS / 2; round++) {
      const repo = `/repo/${round}`
      const [left, right] = [
        await workingUpTo(mine, 'prepared', { repo }),
        await workingUpTo(mine, 'prepared', { repo }),
      ]
      const kinds = await race(
        round,
        () => mine.apply(takeLanding, left.ref),
        () => theirs.apply(takeLanding, right.ref),
      )
      expect(kinds.map(({ kind }) => kind).toSorted()).toEqual(['done', 'waiting'])
    }
    await assertInvariants(mine)
  })

  test('two that settle what was decided: one of them does, and only its word counts', async () => {
    const [mine, theirs] = await both()
    for (let round = 0; round < ROUNDS / 3; round++) {
      const { runId, workerId } = await settlingAfter(mine, { state: 'succeeded' }, { repo: `/repo/${round}` })
      const [left, right] = [await addWorker(mine), await addWorker(mine)]
      const claims = await race(
        round,
        () => mine.apply(claimSettling, runId, { workerId: left, leaseMs: LEASE_MS, dead: workerId }),
        () => theirs.apply(claimSettling, runId, { workerId: right, leaseMs: LEASE_MS, dead: workerId }),
      )
      expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1)
      const words = await race(
        round,
        () => mine.apply(landedWorkspace, runId, left, null, 0),
        () => theirs.apply(landedWorkspace, runId, right, null, 0),
      )
      expect(words.filter((word) => word !== undefined)).toHaveLength(1)
    }
    await assertInvariants(mine)
  })
})
