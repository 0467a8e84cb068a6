import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { noteForgotten } from '../events/retention.ts'
import { WEBHOOK_AGENT } from '../schedule/dispatch.ts'
import { flag, integer, row, text } from '../store/row.ts'
import type { Row } from '../store/row.ts'
import { among, literals, now, raw, skipLocked, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, run, single, together } from '../store/transition.ts'
import type { Query, Transition } from '../store/transition.ts'

/** What may go: runs that ended longer ago than this, with all that is recorded of them. */
export interface Cut {
  readonly runsMs: number
  /** Without it the conversation of a thread that is open stays, however old: a person may go on with it. */
  readonly threadsMs?: number
}

/** Where a look goes on: behind this end. */
export interface Place {
  readonly endedAt: number
  readonly seq: number
}

export const BEGINNING: Place = { endedAt: 0, seq: 0 }

const oldRunRow = row({
  seq: integer,
  id: text<RunId>(),
  endedAt: integer,
  /** Nothing that lives refers to it. */
  mayGo: flag,
  events: integer,
  /** The newest of them: whatever happens to the run later is told by a newer one. */
  lastEvent: integer,
})
export interface OldRun extends Place {
  readonly id: RunId
  readonly mayGo: boolean
  readonly events: number
  readonly lastEvent: number
}

/** Of the run `r`: the number of its newest event. */
const LAST_EVENT: Sql = sql`(select coalesce(max(newest), 0) from (
  select max(e.seq) as newest from events e where e.run_id = r.id
  union all select max(e.seq) as newest from events e where e.run_seq = r.seq) as events_of_run)`

/** The next runs by their end, whether they may go or not: a look at so many and no more, whatever is held. */
export const oldRuns = single((cut: Cut, after: Place, limit: number) =>
  all(
    oldRunRow,
    sql`select r.seq, r.id, r.ended_at, case when ${mayGo(cut)} then 1 else 0 end as may_go,
        (select count(*) from events e where e.run_id = r.id) + (select count(*) from events e where e.run_seq = r.seq) as events,
        ${LAST_EVENT} as last_event
      from (select seq, id, thread_id, agent, created_at, ended_at, submit_key, parent_run_id, input from runs
        where ended_at is not null and ended_at <= ${now} - ${cut.runsMs} and ended_at >= ${after.endedAt}
          and (ended_at > ${after.endedAt} or seq > ${after.seq})
        order by ended_at, seq limit ${limit}) as r order by r.ended_at, r.seq`,
  ),
)

/**
 * Forgets those of them that are still as they were seen, in one transaction. Whatever is recorded of a run later takes a lock
 * on its row, or finds it gone.
 */
export function* forgetRuns(seen: readonly Pick<OldRun, 'id' | 'lastEvent'>[], cut: Cut): Transition<readonly RunId[]> {
  const wanted = seen.map(({ id }) => id)
  const held = yield* all(
    row({ id: text<RunId>() }),
    sql`select id from runs where id in ${among(wanted)} order by seq ${skipLocked}`,
  )
  const lastSeen = new Map(seen.map(({ id, lastEvent }) => [id, lastEvent]))
  const found = yield* all(
    oldRunRow,
    sql`select r.seq, r.id, r.ended_at, 1 as may_go, 0 as events,
        ${LAST_EVENT} as last_event
      from runs r where r.id in ${among(held.map(({ id }) => id))}
        and r.ended_at is not null and r.ended_at <= ${now} - ${cut.runsMs} and ${mayGo(cut)} order by r.seq`,
  )
  const going = found.filter(({ id, lastEvent }) => lastSeen.get(id) === lastEvent)
  if (going.length === 0) return []
  yield* together(deletions(going))
  const through = Math.max(...going.map(({ lastEvent }) => lastEvent))
  yield* noteForgotten(through, { runs: going.length })
  return going.map(({ id }) => id)
}

/** By the column that names the run, in the order that their references allow. */
const TABLES_OF_RUN = ['approvals', 'late_results', 'attempts', 'actions', 'entries', 'workspaces', 'events'] as const
/** Those whose rows name it by its number; an event does either. */
const TABLES_OF_NUMBER = ['steps', 'events'] as const

function deletions(runs: readonly { readonly id: RunId; readonly seq: number }[]): Query<number>[] {
  const ids = among(runs.map(({ id }) => id))
  return [
    ...TABLES_OF_NUMBER.map((table) =>
      run(sql`delete from ${raw(table)} where run_seq in (select seq from runs where id in ${ids})`),
    ),
    ...TABLES_OF_RUN.map((table) => run(sql`delete from ${raw(table)} where run_id in ${ids}`)),
    run(sql`delete from runs where id in ${ids} and ended_at is not null`),
  ]
}

/** What is recorded of these runs, table by table, as it is stored. */
export function* readRecorded(ids: readonly RunId[]): Transition<readonly Recorded[]> {
  const rows: Recorded[] = []
  const of = among(ids)
  const take = (table: string, found: readonly Record<string, unknown>[]) =>
    void rows.push(...found.map((record) => ({ table, record })))
  take('runs', yield* all(asIs, sql`select * from runs where id in ${of}`))
  for (const table of TABLES_OF_NUMBER)
    take(
      table,
      yield* all(asIs, sql`select * from ${raw(table)} where run_seq in (select seq from runs where id in ${of})`),
    )
  for (const table of TABLES_OF_RUN)
    take(table, yield* all(asIs, sql`select * from ${raw(table)} where run_id in ${of}`))
  return rows
}

export interface Recorded {
  readonly table: string
  readonly record: Readonly<Record<string, unknown>>
}

const asIs: Row<Record<string, unknown>> = { decode: (record) => ({ ...record }) }

/**
 * Of the run `r`, which has ended. Each line is something that still needs it. Who ended it may have had a clock that was far behind:
 * nothing is older than the word that asked for it.
 */
const mayGo = (cut: Cut): Sql => sql`(
  r.created_at <= ${now} - ${cut.runsMs}
  and (r.submit_key is null or (case when r.ended_at > r.created_at then r.ended_at else r.created_at end)
    <= ${now} - ${Math.max(cut.runsMs, LIMITS.keysKeptMs)})
  and not exists (select 1 from runs c where c.parent_run_id = r.id)
  and not exists (select 1 from runs p where p.id = r.parent_run_id and p.ended_at is null)
  and not exists (select 1 from actions a where a.run_id = r.id and a.state in (${literals(UNSETTLED)}))
  and not exists (select 1 from actions a join once_marks m on m.action_id = a.id where a.run_id = r.id)
  and not exists (select 1 from actions a join actions b on b.repeat_of = a.id where a.run_id = r.id and b.run_id <> r.id)
  and not exists (select 1 from steps s where s.run_seq = r.seq and s.state in ('started', 'in_doubt'))
  and not exists (select 1 from workspaces w where w.run_id = r.id
    and (w.state not in (${literals(SETTLED_WORK)}) or w.wish is not null or (w.keep_until is not null and w.swept_at is null)))
  and not exists (select 1 from runs l where l.thread_id = r.thread_id and l.kind = 'agent' and l.state in ('queued', 'running', 'parked')
    and l.input is null and l.workspace = 'transaction')
  and not exists (select 1 from schedules s where s.owner_thread = r.thread_id and s.owner_run = r.id and s.state in ('active', 'paused'))
  and not exists (select 1 from sessions s where s.thread_id = r.thread_id and s.run_id = r.id and s.ended_at is null)
  and not exists (select 1 from breakers b where b.agent = r.agent and b.probe_run_id = r.id)
  and not exists (select 1 from actions a join runs p on p.id = a.run_id
    where a.id = substr(r.submit_key, 8) and r.submit_key like 'resume:%' and p.ended_at is null)
  and not exists (${shown(cut)}))`

const UNSETTLED = ['proposed', 'waiting', 'approved', 'started', 'in_doubt']
const SETTLED_WORK = ['landed', 'discarded', 'kept', 'would_land', 'would_discard']

/** What a model would be shown if somebody went on with the conversation: from its last summary on. A function begins anew. */
const shown = ({ threadsMs }: Cut): Sql => sql`select 1 from entries e join threads t on t.id = e.thread_id
  where e.run_id = r.id and r.input is null and t.agent <> ${WEBHOOK_AGENT} and t.state <> 'removed' and t.generation = e.generation
    and e.seq >= coalesce((select max(s.seq) from entries s
      where s.thread_id = e.thread_id and s.generation = e.generation and s.kind = 'summary'), 0)
    and ${threadsMs === undefined ? sql`1 = 1` : stirred(threadsMs)}`

/** Something is under way in the thread, or was lately. */
const stirred = (threadsMs: number): Sql => sql`exists (select 1 from runs l where l.thread_id = t.id
  and (l.ended_at is null or l.ended_at > ${now} - ${threadsMs} or l.created_at > ${now} - ${threadsMs}))`
