import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

import { systemRandomness as random } from '../../src/base/ids.ts'
import { integer, row as columns } from '../../src/store/row.ts'
import { raw } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { one, single } from '../../src/store/transition.ts'
import { forgetHistory } from '../../src/workers/history/forget.ts'
import type { ForgetOptions, Forgotten } from '../../src/workers/history/forget.ts'
import { hurriedClock } from './clocks.ts'
import type { Snapshot } from './invariants.ts'

export const DAY_MS = 86_400_000

export type Row = Readonly<Record<string, unknown>>

/** One pass, without rests. */
export const forget = (store: Store, runsMs: number, more: Partial<ForgetOptions> = {}): Promise<Forgotten> =>
  forgetHistory({
    store,
    clock: hurriedClock(),
    random,
    cut: { runsMs },
    share: 1,
    mayGoOn: async () => true,
    ...more,
  })

/** What the files of an archive hold, by table. */
export function archived(folder: string): Map<string, Row[]> {
  const tables = new Map<string, Row[]>()
  // What somebody who was killed was still writing has another name.
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.gz'))) {
    const [header, ...lines] = gunzipSync(readFileSync(join(folder, name)))
      .toString()
      .trimEnd()
      .split('\n')
    if ((JSON.parse(header!) as Row)['archive'] !== 'holdfast') throw new Error(`${name} has no header`)
    for (const line of lines) {
      const { table, row } = JSON.parse(line) as { table: string; row: Row }
      tables.set(table, [...(tables.get(table) ?? []), row])
    }
  }
  return tables
}

/** The rows of a table that are in `before` and no longer in `after`; and those that are new. */
export function difference(table: string, before: Snapshot, after: Snapshot): { gone: Row[]; fresh: Row[] } {
  const [old, current] = [before, after].map(
    (content) => new Map((content[table] ?? []).map((row) => [JSON.stringify(row), row as Row])),
  )
  return {
    gone: [...old!].flatMap(([text, row]) => (current!.has(text) ? [] : [row])),
    fresh: [...current!].flatMap(([text, row]) => (old!.has(text) ? [] : [row])),
  }
}

const countRow = columns({ count: integer })

/** How many rows there are. */
export const countOf = (store: Store, table: string) =>
  store.read(single(() => one(countRow, raw(`select count(*) as count from ${table}`)))).then(({ count }) => count)
