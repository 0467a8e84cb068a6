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

/** What the independent ledger says against what we say, of everything that ever was. */
export async function wrongInBooks(store: Store, lines: readonly string[]): Promise<string[]> {
  const known = new Map((await store.read(effects)).map((effect) => [effect.id, effect]))
  const written = new Set(lines)
  const again = new Set<string>()
  const doubled = lines.filter((line) => again.has(line) || !again.add(line))
  return [
    ...doubled.map((line) => `${line} was written again`),
    ...lines.filter((line) => !known.has(line)).map((line) => `${line} was written, and nobody knows it`),
    ...[...known.values()].flatMap(({ id, state, isOver, repeatOf }) => {
      if (isOver === 0) return [`${id} is ${state} after the end`]
      if (HAPPENED.includes(state))
        return written.has(id) || repeatOf !== null ? [] : [`${id} is ${state}, and was not written`]
      return written.has(id) || state === 'in_doubt' ? [`${id} is ${state}, and was written: ${written.has(id)}`] : []
    }),
  ]
}
