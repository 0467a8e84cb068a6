import type { AttemptId, RunId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { literals, now, skipLocked, sql } from '../store/sql.ts'
import { first, one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { attemptRow } from './attempt.ts'
import type { Attempt } from './attempt.ts'
import { passBreaker } from './breaker.ts'
import { fullAgents, releaseSlots, takeSlots } from './capacity.ts'
import type { CapacityLimits } from './capacity.ts'
import { finishUnclaimed } from './finish.ts'
import { runRow } from './run.ts'
import type { Run } from './run.ts'

export interface Claimant {
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly limits: CapacityLimits
  /** Only this run: what a foreground `holdfast run` executes itself. */
  readonly only?: RunId
  /** The agents that this worker has; commands it can always execute. */
  readonly agents?: readonly string[]
  /** The machine that it is on: runs with a workspace are carried out where that is. */
  readonly host?: string
  readonly attempt: { readonly id: AttemptId; readonly mark: string }
}

export interface Claim {
  readonly run: Run
  readonly attempt: Attempt
}

/**
 * Takes the next run: by priority, then first in, first out, passing over threads that are busy and agents that are
 * full. What an open breaker refuses ends here and the next is looked at.
 */
export function* claimRun(claimant: Claimant): Transition<Claim | undefined> {
  const full = yield* fullAgents(claimant.limits)
  if (full.total) return undefined
  const passedOver = [...full.agents]
  for (let refused = 0; refused < LIMITS.refusalsPerClaim;) {
    const candidate = yield* nextQueued(claimant, passedOver)
    if (candidate === undefined) return undefined
    if (!(yield* passBreaker(candidate))) {
      yield* refuseByBreaker(candidate)
      refused += 1
      continue
    }
    const slots = yield* takeSlots(candidate.agent, claimant.limits)
    if (slots === undefined) {
      passedOver.push(candidate.agent)
      continue
    }
    const claimed = yield* take(candidate, claimant, slots)
    if (claimed !== undefined) return claimed
    yield* releaseSlots(slots)
  }
  return undefined
}

function* nextQueued(claimant: Claimant, passedOver: readonly string[]): Transition<Run | undefined> {
  const { only, workerId, agents = [] } = claimant
  return yield* first(
    runRow,
    sql`select * from runs waiting where state = 'queued' and input is null
        and ${only === undefined ? sql`1 = 1` : sql`id = ${only}`}
        and ${passedOver.length === 0 ? sql`1 = 1` : sql`agent not in (${literals(passedOver)})`}
        and (expires_at is null or expires_at > ${now})
        and not exists (select 1 from runs busy where busy.thread_id = waiting.thread_id and busy.state in ('running', 'parked') and busy.input is null)
        and (for_worker is null or for_worker = ${workerId})
        and (host is null or host = ${claimant.host ?? ''})
        and ${agents.length === 0 ? sql`kind = 'command'` : sql`(kind = 'command' or agent in (${literals(agents)}))`}
      order by priority desc, seq limit 1 ${skipLocked}`,
  )
}

function* refuseByBreaker(refused: Run): Transition<void> {
  yield* finishUnclaimed(refused.id, {
    state: 'failed',
    code: 'circuit_open',
    error: `agent ${refused.agent} is stopped for a while: its provider refuses the credentials`,
  })
}

function* take(candidate: Run, claimant: Claimant, slots: readonly string[]): Transition<Claim | undefined> {
  const claimed = yield* first(
    runRow,
    sql`update runs set state = 'running', fence = fence + 1, attempt = attempt + 1,
        started_at = coalesce(started_at, ${now}), expires_at = null
      where id = ${candidate.id} and state = 'queued' and fence = ${candidate.fence} returning *`,
  )
  if (claimed === undefined) return undefined
  const attempt = yield* insertAttempt(claimed, claimant, slots)
  yield* record({
    type: 'run.started',
    threadId: claimed.threadId,
    runId: claimed.id,
    data: { attempt: claimed.attempt, fence: claimed.fence, workerId: claimant.workerId },
  })
  return { run: claimed, attempt }
}

type Holder = Pick<Claimant, 'workerId' | 'leaseMs' | 'attempt'>

function* insertAttempt(claimed: Run, holder: Holder, slots: readonly string[]): Transition<Attempt> {
  return yield* one(
    attemptRow,
    sql`insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until)
      values (${holder.attempt.id}, ${claimed.id}, ${claimed.attempt}, ${claimed.fence}, ${holder.workerId},
        ${holder.attempt.mark}, ${JSON.stringify(slots)}, ${now}, ${now} + ${holder.leaseMs})
      returning *`,
  )
}
