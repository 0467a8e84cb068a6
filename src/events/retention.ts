import { HoldfastError } from '../base/errors.ts'
import { integer, nullable, row } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { TOLD, eventRow, record } from './event.ts'
import type { Event } from './event.ts'

/*
 * The log is forgotten from its old end: events of a run with their run, all others by their age. Numbers are never given
 * again. Whoever comes back with a number that is older than what was forgotten is told so, instead of passing over a gap.
 */

const throughRow = row({ eventsThrough: integer })

/** The last number that was forgotten; 0: nothing was. */
export const forgottenThrough = single(() =>
  one(throughRow, sql`select coalesce(max(events_through), 0) as events_through from retention where id = 1`),
)

/** `after` is the last number that a reader has seen; 0: none, and what there is is what it asks for. */
export function refuseForgotten(after: number, { eventsThrough }: { readonly eventsThrough: number }): void {
  if (after === 0 || after >= eventsThrough) return
  throw new HoldfastError(
    'events/compacted',
    `events up to ${eventsThrough} may have been forgotten, and the last one seen was ${after}`,
    {
      remedy: `begin again from a snapshot, or with after=${eventsThrough}; what is missing is in the archive, if there is one`,
    },
  )
}

/** In the transaction that removes them. Its own event is newer than anything that is removed: the log never ends earlier. */
export function* noteForgotten(
  through: number,
  what: { readonly runs?: number; readonly events?: number; readonly threads?: number },
): Transition<void> {
  yield* run(sql`insert into retention (id, events_through) values (1, ${through})
    on conflict (id) do update set events_through =
      case when retention.events_through < excluded.events_through then excluded.events_through else retention.events_through end`)
  yield* record({ type: 'history.forgotten', data: { ...what, through } })
}

export interface LooseEvents {
  /** The span that was looked at. */
  readonly from: number
  readonly to: number
  readonly events: readonly Event[]
}

const spanRow = row({ looseThrough: integer })
const edgeRow = row({ edge: nullable(integer) })

/** The oldest events that belong to no run, or to one that is gone, in the next span of the log; undefined: it is too young. */
export function* looseEvents(keptMs: number, span: number): Transition<LooseEvents | undefined> {
  const from = (yield* first(spanRow, sql`select loose_through from retention where id = 1`))?.looseThrough ?? 0
  return yield* looseAfter(from, keptMs, span)
}

/** The same from a number on, for who only counts. */
export function* looseAfter(from: number, keptMs: number, span: number): Transition<LooseEvents | undefined> {
  const { edge } = yield* one(
    edgeRow,
    sql`select max(seq) as edge from (select seq, at from events where seq > ${from} order by seq limit ${span}) as span
      where at <= ${now} - ${keptMs}`,
  )
  if (edge === null) return undefined
  const events = yield* all(
    eventRow,
    sql`select ${TOLD} from events e where ${loose(from, edge, keptMs)} order by e.seq`,
  )
  return { from, to: edge, events }
}

/** Counted: behind an "or", PostgreSQL would answer `not exists` from a hash of all runs. */
const loose = (from: number, to: number, keptMs: number) =>
  sql`e.seq > ${from} and e.seq <= ${to} and e.at <= ${now} - ${keptMs}
    and (select count(*) from runs r where r.id = e.run_id) = 0 and (select count(*) from runs r where r.seq = e.run_seq) = 0`

/** Forgets them, unless another has looked at this span meanwhile. How many went. */
export function* forgetEvents({ from, to }: Pick<LooseEvents, 'from' | 'to'>, keptMs: number): Transition<number> {
  yield* run(sql`insert into retention (id) values (1) on conflict do nothing`)
  const moved = yield* run(sql`update retention set loose_through = ${to}, events_until =
      case when events_until < ${now} - ${keptMs} then ${now} - ${keptMs} else events_until end
    where id = 1 and loose_through = ${from}`)
  if (moved === 0) return 0
  const events = yield* run(
    sql`delete from events where seq in (select e.seq from events e where ${loose(from, to, keptMs)})`,
  )
  if (events > 0) yield* noteForgotten(to, { events })
  return events
}

const clockRow = row({ now: integer })

/** What time it is for the store. */
export const storeClock = single(() => one(clockRow, sql`select ${now} as now`))

const boundsRow = row({ oldest: integer, newest: integer, now: integer })
const momentRow = row({ seq: integer, at: integer })

/**
 * How far the clock went ahead within the last day (or since the last event, if that is longer): a store that nobody used, or a clock
 * that is wrong. By halves: numbers go with time. What is later than now is of a clock that was wrong once, and says nothing.
 */
export function* clockGap(dayMs: number): Transition<number> {
  const {
    oldest,
    newest,
    now: current,
  } = yield* one(
    boundsRow,
    sql`select coalesce((select min(seq) from events), 0) as oldest, coalesce((select max(seq) from events), 0) as newest, ${now} as now`,
  )
  let [before, from] = [oldest, newest + 1]
  const latestBefore = (seq: number) =>
    first(momentRow, sql`select seq, at from events where seq < ${seq} order by seq desc limit 1`)
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2)
    const found = yield* latestBefore(middle + 1)
    if (found !== undefined && found.at > current - dayMs && found.at <= current) from = found.seq
    else before = middle
  }
  const last = yield* latestBefore(from)
  const next = yield* first(momentRow, sql`select seq, at from events where seq >= ${from} order by seq limit 1`)
  return last === undefined ? 0 : (next?.at ?? current) - last.at
}

const keeperRow = row({ id: integer })

/** Whether this process is the one that forgets, for the next while. */
export function* becomeKeeper(keeper: string, forMs: number): Transition<boolean> {
  yield* run(sql`insert into retention (id) values (1) on conflict do nothing`)
  const taken = yield* first(
    keeperRow,
    sql`update retention set keeper = ${keeper}, keeper_until = ${now} + ${forMs}
      where id = 1 and (keeper_until <= ${now} or keeper = ${keeper}) returning id`,
  )
  return taken !== undefined
}
