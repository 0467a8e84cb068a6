import { SQLITE } from './migration.ts'
import type { Dialect, Migration } from './migration.ts'

/** What each table says of a column, and how a condition names the column. */
const LISTS: Readonly<Record<string, readonly (readonly [column: string, words: readonly string[]])[]>> = {
  runs: [
    ['state', ['queued', 'running', 'parked', 'succeeded', 'failed', 'cancelled']],
    ['state', ['succeeded', 'failed', 'cancelled']],
    ['kind', ['command', 'agent', 'observed']],
    ['parent_mode', ['wait', 'background', 'detached']],
  ],
  attempts: [['outcome', ['succeeded', 'failed', 'cancelled', 'parked', 'requeued', 'superseded']]],
  steps: [['state', ['started', 'done', 'failed', 'in_doubt']]],
}

const asList = (column: string, words: readonly string[]) =>
  `${column} in (${words.map((word) => `'${word}'`).join(', ')})`

export const asComparisons = (column: string, words: readonly string[]) =>
  words.map((word) => `${column} = '${word}'`).join(' or ')

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`

/**
 * For a list of three words or more SQLite makes a table of them and looks each row up in it: 0.4 µs for each list and row that is
 * written, a quarter of what the statement takes. Compared one by one they take nothing that could be measured.
 *
 * What a check says is the same, so only its text is changed, as SQLite's documentation has it for changes of which the rows know
 * nothing: nobody waits until a table is written anew.
 */
export const checksByComparison: Migration = {
  number: 19,
  name: 'checks-by-comparison',
  statements: (d: Dialect) =>
    d === SQLITE
      ? [
          'pragma writable_schema = on',
          ...Object.entries(LISTS).flatMap(([table, lists]) =>
            lists.map(
              ([column, words]) =>
                `update sqlite_schema set sql = replace(sql, ${quoted(asList(column, words))}, ${quoted(asComparisons(column, words))})
                  where type = 'table' and name = '${table}'`,
            ),
          ),
          'pragma writable_schema = reset',
          // What an index is about is a list too. That of a call is not looked at: its input says first that it is none of these. As
          // comparisons it would not be known again by who asks with the list, and all that a thread ever had would be looked through.
          'drop index runs_one_agent',
          `create unique index runs_one_agent on runs (thread_id)
            where input is null and kind = 'agent' and state in ('queued', 'running', 'parked')`,
          // Its numbers went with it.
          `insert into sqlite_stat1 (tbl, idx, stat) values ('runs', 'runs_one_agent', '1000 1')`,
          'analyze sqlite_schema',
        ]
      : [],
}
