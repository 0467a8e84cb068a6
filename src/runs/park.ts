import type { Instant } from '../base/clock.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, holding, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { holdThread } from '../threads/thread.ts'
import { endAttempt } from './attempt.ts'
import type { AttemptRef } from './attempt.ts'
import { findRun, runRow } from './run.ts'
import type { Run, Usage } from './run.ts'

const NOTHING_SPENT: Usage = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }

export type Parked =
  | { readonly kind: 'parked'; readonly run: Run }
  /** Cancel was requested meanwhile, or the claim is lost: the worker must not wait. */
  | { readonly kind: 'refused'; readonly run: Run | undefined }

/** The run waits for something outside: it gives up its slot, its lease and its memory, and any worker can go on with it. */
export function* parkRun(
  attempt: AttemptRef,
  waitsFor: string,
  resumeAt: Instant | null = null,
  usage: Usage = NOTHING_SPENT,
): Transition<Parked> {
  const parked = yield* first(
    runRow,
    sql`update runs set state = 'parked', parked_at = ${now}, parked_for = ${waitsFor}, resume_at = ${resumeAt},
        input_tokens = input_tokens + ${usage.inputTokens}, output_tokens = output_tokens + ${usage.outputTokens},
        cost_microusd = cost_microusd + ${usage.costMicrousd}
      where id = ${attempt.runId} and fence = ${attempt.fence} and state = 'running' and cancel_requested_at is null
      returning *`,
  )
  if (parked === undefined) return { kind: 'refused', run: yield* findRun.single(attempt.runId) }
  yield* endAttempt(attempt, 'parked')
  yield* record({ type: 'run.parked', threadId: parked.threadId, runId: parked.id, data: { waitsFor } })
  return { kind: 'parked', run: parked }
}

/** What a run that waits for those it started is parked for. */
export const CHILDREN = 'children'

const threadRunRow = row({ id: text<RunId>() })

/**
 * Goes on with a thread's run that waits for its children. Whoever puts something into a thread's inbox, and whoever parks
 * its run, holds the thread's row: so neither misses the other, also where writers run side by side.
 */
export function* resumeWaiting(threadId: ThreadId): Transition<void> {
  yield* holdThread(threadId)
  const waiting = yield* first(
    threadRunRow,
    sql`select id from runs where thread_id = ${threadId} and state = 'parked' and parked_for = ${CHILDREN}`,
  )
  if (waiting !== undefined) yield* resumeRun(waiting.id)
}

/** What a run that waits for a person's decision is parked for. */
export const DECISION = 'a decision'

/** What the turn of a session is parked for when everything is decided: only its client can go on with it. */
export const ITS_CLIENT = 'its client'

/**
 * Whoever decides something for a run, and whoever parks it for that, holds the run's row first: so neither misses the
 * other, also where writers run side by side.
 */
export function* holdRun(runId: RunId): Transition<void> {
  yield* holding(`run:${runId}`, run(sql`update runs set fence = fence where id = ${runId}`))
}

/** A decision was made: the run goes on at once, or will see it itself before it parks. */
export function* resumeDecided(runId: RunId): Transition<void> {
  const waiting = (yield* waitingFor(sql`id = ${runId}`)) ?? (yield* waitingFor(heirOf(runId)))
  if (waiting !== undefined) return void (yield* resumeRun(waiting.id))
  yield* first(
    threadRunRow,
    sql`update runs set parked_for = ${ITS_CLIENT} where id = ${runId} and state = 'parked' and kind = 'observed'
      and parked_for = ${DECISION}
      and not exists (select 1 from actions a where a.run_id = runs.id and a.state = 'waiting') returning id`,
  )
}

/** What a run left in doubt when it ended is waited for by the next one on its thread. */
const heirOf = (runId: RunId) =>
  sql`input is null and thread_id = (select thread_id from runs where id = ${runId} and ended_at is not null)`

function* waitingFor(which: Sql): Transition<{ readonly id: RunId } | undefined> {
  return yield* first(
    threadRunRow,
    sql`select id from runs where ${which} and state = 'parked' and parked_for = ${DECISION} and kind <> 'observed'`,
  )
}

/** For how long it was parked just now. A clock that was set back meanwhile makes it nothing, and not a debt that its limits would have to pay. */
export const parkedJustNow = sql`case when ${now} > parked_at then ${now} - parked_at else 0 end`

/** What it waited for has come; a session's own turn is nobody's to claim. The time it was parked does not count towards its limits. */
export function* resumeRun(runId: RunId): Transition<Run | undefined> {
  const resumed = yield* first(
    runRow,
    sql`update runs set state = 'queued', parked_ms = parked_ms + (${parkedJustNow}), parked_at = null, parked_for = null,
        resume_at = null
      where id = ${runId} and state = 'parked' and kind <> 'observed' returning *`,
  )
  if (resumed !== undefined) yield* record({ type: 'run.resumed', threadId: resumed.threadId, runId })
  return resumed
}

/** Goes on with what waited for an instant that has come. */
export function* resumeDue(limit: number): Transition<number> {
  const due = yield* all(
    runRow,
    sql`select * from runs where state = 'parked' and resume_at is not null and resume_at <= ${now} order by resume_at limit ${limit}`,
  )
  for (const { id } of due) yield* resumeRun(id)
  return due.length
}
