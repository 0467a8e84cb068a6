import { integer, nullable, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { all, single } from '../../src/store/transition.ts'
import type { Store } from '../../src/store/store.ts'

const effectRow = row({ id: text(), state: text(), isOver: integer, repeatOf: nullable(text()) })

/** Whatever writes one line of the ledger: the runs of commands, and the calls of tools. */
const effects = single(() =>
  all(
    effectRow,
    sql`select id, state, case when ended_at is null then 0 else 1 end as is_over, null as repeat_of from runs
        where kind = 'command'
      union all select id, state, case when settled_at is null then 0 else 1 end as is_over, repeat_of from actions
        where tool <> 'delegate'`,
  ),
)

const HAPPENED = ['succeeded', 'done']

/**
 * What the independent ledger says against what we say, of everything that ever was. Nothing may be under way at the end; before
 * that, what is done was written before, and what is written was known before.
 */
export async function wrongInBooks(store: Store, ledger: () => readonly string[], atTheEnd: boolean) {
  const said = await store.read(effects)
  const lines = ledger()
  const known = new Set((await store.read(effects)).map(({ id }) => id))
  const written = new Set(lines)
  const again = new Set<string>()
  const doubled = lines.filter((line) => again.has(line) || !again.add(line))
  return [
    ...doubled.map((line) => `${line} was written again`),
    ...lines.filter((line) => !known.has(line)).map((line) => `${line} was written, and nobody knows it`),
    ...said.flatMap(({ id, state, isOver, repeatOf }) => {
      if (isOver === 0) return atTheEnd ? [`${id} is ${state} after the end`] : []
      if (HAPPENED.includes(state))
        return written.has(id) || repeatOf !== null ? [] : [`${id} is ${state}, and was not written`]
      return written.has(id) || state === 'in_doubt' ? [`${id} is ${state}, and was written: ${written.has(id)}`] : []
    }),
  ]
}

const EVERY_MS = 2_000

const ticksRow = row({
  nextAt: integer,
  lines: integer,
  instants: nullable(integer),
  firstAt: nullable(integer),
  failed: nullable(integer),
})

const ticks = single(() =>
  all(
    ticksRow,
    sql`select schedules.next_at, count(occurrences.id) as lines, cast(sum(instants) as bigint) as instants,
        min(due_at) as first_at, cast(sum(case when occurrences.state = 'failed' then 1 else 0 end) as bigint) as failed
      from schedules left join occurrences on occurrences.schedule_id = schedules.id
      where schedules.state = 'active' group by schedules.id, schedules.next_at`,
  ),
)

/** Each instant of the schedule has its line; none lies further back than anybody may take to recover. */
export async function wrongInTicks(store: Store, now: number, patienceMs: number): Promise<string[]> {
  const [tick] = await store.read(ticks)
  if (tick === undefined) return ['the schedule is gone']
  const { nextAt, lines, instants, firstAt, failed } = tick
  const due = firstAt === null ? 0 : Math.round((nextAt - firstAt) / EVERY_MS)
  return [
    ...(now - nextAt > patienceMs ? [`the schedule should have fired ${now - nextAt} ms ago`] : []),
    ...(due === (instants ?? 0) ? [] : [`${due} instants were due, ${instants} are told of in ${lines} lines`]),
    ...((failed ?? 0) > 0 ? [`${failed} firings failed`] : []),
  ]
}
