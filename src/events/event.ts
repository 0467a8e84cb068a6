import type { RunId, ThreadId } from '../base/ids.ts'
import { integer, json, nullable, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { GIVEN, all, append, first, one, single } from '../store/transition.ts'
import type { Ask, Joint, Query, Transition, Values } from '../store/transition.ts'

/**
 * The log of what happened: append-only, totally ordered, written in the transaction it tells about. `noun.verb` in
 * the past tense; a run's end is one `run.finished`.
 */
export const EVENT_TYPES = [
  'thread.created',
  'thread.stopped',
  'thread.reopened',
  'thread.removed',
  'run.queued',
  'run.started',
  'run.parked',
  'run.resumed',
  'run.cancel_requested',
  'run.taken_over',
  'run.handed_over',
  'run.requeued',
  'run.finished',
  'run.late_result',
  'run.traced',
  'message.accepted',
  'message.dead',
  'message.leased',
  'message.returned',
  'message.replaced',
  'message.retried',
  'message.purged',
  'message.consumed',
  'step.recorded',
  'step.compacted',
  'action.proposed',
  'action.started',
  'action.settled',
  'hook.unreadable',
  'action.released',
  'approval.requested',
  'approval.decided',
  'approval.expired',
  'doubt.resolved',
  'notice.given_up',
  'policy.rule_added',
  'policy.rule_removed',
  'breaker.opened',
  'breaker.reopened',
  'breaker.reset',
  'schedule.created',
  'schedule.changed',
  'schedule.paused',
  'schedule.resumed',
  'schedule.ended',
  'occurrence.waiting',
  'occurrence.dispatched',
  'occurrence.retrying',
  'occurrence.settled',
  'token.created',
  'token.revoked',
  'operator.acted',
  'history.forgotten',
  'tool.pinned',
  'tool.changed',
  'tool.accepted',
  'workspace.opened',
  'workspace.prepared',
  'workspace.checked',
  'workspace.decided',
  'workspace.landed',
  'workspace.ready',
  'workspace.discarding',
  'workspace.discarded',
  'workspace.quarantined',
  'workspace.kept',
  'workspace.would_land',
  'workspace.would_discard',
  'workspace.asked',
  'workspace.refused',
  'workspace.swept',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

export interface NewEvent {
  readonly type: EventType
  readonly threadId?: ThreadId | undefined
  /** The run that it is about: by its id, or by its number, which takes a tenth of the room. */
  readonly runId?: RunId | undefined
  readonly runSeq?: number | undefined
  readonly data?: Readonly<Record<string, unknown>>
}

export const eventRow = row({
  seq: integer,
  at: integer,
  type: text(),
  threadId: nullable(text<ThreadId>()),
  runId: nullable(text<RunId>()),
  data: json<Record<string, unknown>>(),
})
export type Event = Decoded<typeof eventRow>

/**
 * Written at the commit: on a database with several writers the numbers must be given in the order of the commits, or a
 * reader of "everything after N" would pass over one that commits late. `topic` is what listeners in this process hear; null where nobody
 * waits for it but readers of events.
 */
export function* record(event: NewEvent, topic?: string | null): Transition<void> {
  yield recording(event, topic)
}

/** The same as the statement itself, for whoever writes many. */
export function recording(event: NewEvent, topic: string | null = event.type): Query<void> {
  const values: Values = []
  putEvent(values, event)
  const query = append(EVENTS, values)
  if (topic !== null) query.topic = topic
  return query
}

/** The same where it is foreseen. */
export function foreseeEvent(ask: Ask, event: NewEvent, topic: string | null = event.type): void {
  putEvent(ask.rows(EVENTS), event)
  if (topic !== null) ask.tell(topic)
}

function putEvent(rows: Values, { type, threadId, runId, runSeq, data }: NewEvent): void {
  const said = data === undefined ? '{}' : JSON.stringify(data)
  rows.push(type, threadId ?? null, runId ?? null, runSeq ?? null, said)
}

/** Numbered in the order in which they are given. */
const EVENTS: Joint = {
  table: 'events',
  columns: [
    ['type', 'word'],
    ['thread_id', 'text'],
    ['run_id', 'word'],
    ['run_seq', 'bigint'],
    ['data', 'text'],
  ],
  key: [],
  atCommit: true,
  many: sql`insert into events (at, type, thread_id, run_id, run_seq, data)
    select ${now}, given.type, given.thread_id, given.run_id, given.run_seq, given.data from ${GIVEN} order by place`,
}

/** An event as it is told, from `events e`: its run by its id, whichever of the two it was recorded with. */
export const TOLD: Sql = sql`e.seq, e.at, e.type, e.thread_id, coalesce(e.run_id, (select r.id from runs r where r.seq = e.run_seq)) as run_id, e.data`

/** Everything after `seq`, oldest first. Cheap: a range of the primary key. */
export const eventsAfter = single((seq: number, limit: number) =>
  all(eventRow, sql`select ${TOLD} from events e where e.seq > ${seq} order by e.seq limit ${limit}`),
)

export const runEventsAfter = single((runId: RunId, seq: number, limit: number) =>
  all(
    eventRow,
    sql`select ${TOLD} from (
        select * from (select * from events where run_id = ${runId} and seq > ${seq} order by seq limit ${limit}) as by_id
        union all
        select * from (select * from events where run_seq = (select seq from runs where id = ${runId}) and seq > ${seq}
          order by seq limit ${limit}) as by_number
      ) as e order by e.seq limit ${limit}`,
  ),
)

export interface EventFilter {
  readonly limit: number
  /** Newest first from below this number, or oldest first from above that one. */
  readonly before?: number
  readonly after?: number
  readonly types?: readonly string[]
  readonly threadId?: ThreadId
}

export interface EventPage {
  readonly events: readonly Event[]
  /** Where the next page begins; undefined: everything was looked at. */
  readonly next: number | undefined
  readonly last: number
}

/**
 * A page of the log. What is asked for may be rare, so a page looks at so many events and no more, and says where the next
 * one begins: it may have few items, and it never takes long.
 */
export function* eventPage(filter: EventFilter, looked: number): Transition<EventPage> {
  const { limit, before, after, types, threadId } = filter
  const { seq: last } = yield* lastEventSeq.single()
  const forwards = after !== undefined
  // What was forgotten is not looked through.
  const begin = forwards ? Math.max(after, ((yield* firstEventSeq.single())?.seq ?? 1) - 1) : 0
  const [from, to] = forwards
    ? [begin + 1, Math.min(last, begin + looked)]
    : [Math.max(1, Math.min(before ?? last + 1, last + 1) - looked), Math.min(before ?? last + 1, last + 1) - 1]
  const events = yield* all(
    eventRow,
    sql`select ${TOLD} from events e where e.seq >= ${from} and e.seq <= ${to}
      and ${types === undefined ? sql`1 = 1` : sql`e.type in (${literals(types)})`}
      and ${threadId === undefined ? sql`1 = 1` : sql`e.thread_id = ${threadId}`}
      order by e.seq ${forwards ? sql`` : sql`desc`} limit ${limit}`,
  )
  const isFull = events.length === limit
  const edge = isFull ? events.at(-1)!.seq : forwards ? to : from
  const isOver = !isFull && (forwards ? to >= last : from <= 1)
  return { events, next: isOver ? undefined : edge, last }
}

const seqRow = row({ seq: integer })
const firstEventSeq = single(() => first(seqRow, sql`select seq from events order by seq limit 1`))

/** When the last thing happened, by the clock of whoever recorded it. */
export const newestEventAt = single(() =>
  first(row({ at: integer }), sql`select at from events order by seq desc limit 1`),
)

export const lastEventSeq = single(() => one(seqRow, sql`select coalesce(max(seq), 0) as seq from events`))
