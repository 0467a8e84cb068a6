import type { AttemptId, ThreadId, WorkerId } from '../../src/base/ids.ts'
import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Finish, Outcome } from '../../src/runs/finish.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import type { Run } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { sql } from '../../src/store/sql.ts'
import { run as execute, single } from '../../src/store/transition.ts'
import { LEASE_MS, addWorker, running } from '../support/world.ts'

/** One run with everything that its end touches, and who may end it. */
export interface Prize {
  readonly run: Run
  readonly ref: AttemptRef & { readonly mark: string }
  readonly parentThreadId: ThreadId
  readonly agent: string
  readonly taker: WorkerId
}

/** What a contender was told, step by step. */
export interface Told {
  readonly finish?: Finish
  readonly cancel?: 'requested' | 'already-terminal' | 'cancelled' | 'unknown-run'
  readonly takeover?: AttemptId | 'refused'
}

/** How an end looks when this contender won it. */
export interface Mark {
  readonly state: Run['state']
  readonly code: string | null
  readonly by: string | null
  /** What it does to a breaker that has counted all but one of the failures that open it. */
  readonly breaker: 'reset' | 'opened' | 'untouched'
}

export interface Contender {
  readonly name: string
  readonly won: Mark
  /** `pause` comes between any two steps, and before the first. */
  contend(store: Store, prize: Prize, pause: () => Promise<void>): Promise<Told>
}

function finishing(name: string, outcome: Outcome, won: Omit<Mark, 'state' | 'by'>): Contender {
  return {
    name,
    won: { state: outcome.state, by: outcome.result === undefined ? null : name, ...won },
    async contend(store, { ref }, pause) {
      await pause()
      return { finish: await store.apply(finishRun, ref, outcome) }
    },
  }
}

const cancelling: Contender = {
  name: 'cancel',
  won: { state: 'cancelled', code: null, by: null, breaker: 'untouched' },
  async contend(store, { run, ref }, pause) {
    await pause()
    const { kind: cancel } = await store.apply(cancelRun, run.id, { by: 'tester' })
    if (cancel !== 'requested') return { cancel }
    await pause()
    return { cancel, finish: await store.apply(finishRun, ref, { state: 'cancelled' }) }
  },
}

const recovering: Contender = {
  name: 'recover',
  won: { state: 'succeeded', code: null, by: 'recover', breaker: 'reset' },
  async contend(store, { ref, taker }, pause) {
    await pause()
    const attemptId = newAttemptId(random)
    const claim = await store.apply(takeOverRun, ref, 'owner-dead', { workerId: taker, leaseMs: LEASE_MS, attemptId })
    if (claim === undefined) return { takeover: 'refused' }
    await pause()
    const mine = { id: attemptId, runId: claim.run.id, fence: claim.run.fence }
    const finish = await store.apply(finishRun, mine, { state: 'succeeded', result: { by: 'recover' } })
    return { takeover: attemptId, finish }
  },
}

export const CONTENDERS: readonly Contender[] = [
  finishing('succeed', { state: 'succeeded', result: { by: 'succeed' } }, { code: null, breaker: 'reset' }),
  finishing('fail', { state: 'failed', code: 'auth', error: '401' }, { code: 'auth', breaker: 'opened' }),
  cancelling,
  finishing(
    'time out',
    { state: 'failed', code: 'timeout', error: 'too long' },
    { code: 'timeout', breaker: 'untouched' },
  ),
  recovering,
]

const countFailures = single((agent: string) =>
  execute(sql`insert into breakers (agent, cause, failures) values (${agent}, 'auth', ${LIMITS.breakerFailures - 1})`),
)

/** Each has an agent of its own, so that its slot and its breaker tell of this race alone. */
export async function aPrize(store: Store, index: number, parentThreadId: ThreadId): Promise<Prize> {
  const agent = `agent-${index}`
  await store.apply(countFailures, agent)
  const { run, ref, attempt } = await running(store, { agent, parentThreadId }, { total: 1_000, eachAgent: 1 })
  return { run, ref: { ...ref, mark: attempt.mark }, parentThreadId, agent, taker: await addWorker(store) }
}
