import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { ATTEMPT_OUTCOMES } from '../../src/runs/attempt.ts'
import { RUN_STATES } from '../../src/runs/run.ts'
import { WORKER_KINDS } from '../../src/runs/worker.ts'
import { OCCURRENCE_STATES, WAITS } from '../../src/schedule/occurrence.ts'
import { SCHEDULE_KINDS, SCHEDULE_STATES } from '../../src/schedule/schedule.ts'
import { SQLITE_CHECKSUMS } from '../../src/store/migrations/checksums.ts'
import { checksumOf } from '../../src/store/migrations/history.ts'
import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import { SQLITE } from '../../src/store/migrations/migration.ts'
import type { Migration } from '../../src/store/migrations/migration.ts'
import type { Connection } from '../../src/store/sqlite/connection.ts'
import { migrate } from '../../src/store/sqlite/migrate.ts'
import { isUpToDate, openConnection } from '../../src/store/sqlite/open.ts'
import type { Row } from '../../src/store/row.ts'
import { raw } from '../../src/store/sql.ts'
import { all } from '../../src/store/transition.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { MESSAGE_STATES } from '../../src/threads/message.ts'
import { THREAD_STATES } from '../../src/threads/thread.ts'
import { WISHES, WORKSPACE_MODES, WORKSPACE_STATES } from '../../src/workspace/workspace.ts'
import { temporaryFolder } from '../support/engines.ts'
import { ROWS, fillingRow, firstWords } from './filled.ts'

const clock = new FakeClock()
const asIs: Row<Record<string, unknown>> = { decode: (record) => ({ ...record }) }

const rowsOf = (connection: Connection, text: string) => connection.look(all(asIs, raw(text)), clock.now())

/** Runs `use` on a connection of its own, as another start of the program would. */
function opened<T>(path: string, use: (connection: Connection) => T): T {
  const connection = openConnection(path, clock)
  try {
    return use(connection)
  } finally {
    connection.close()
  }
}

const aPath = () => join(temporaryFolder(), 'holdfast.db')

/** Tables and indices by name, with white space that does not matter taken out. */
function schemaAt(path: string): unknown[] {
  return opened(path, (connection) =>
    rowsOf(connection, 'select type, name, tbl_name, sql from sqlite_schema order by type, name').map((entry) => ({
      ...entry,
      sql: String(entry['sql']).replace(/\s+/g, ' ').replace(/\( /g, '(').replace(/ \)/g, ')'),
    })),
  )
}

const upTo = (path: string, migrations: readonly Migration[]) =>
  opened(path, (connection) => migrate(connection, migrations))

/** One row in every table, of the tables too that came after the first migration. */
function fill(path: string): void {
  opened(path, (connection) => {
    connection.script(ROWS)
    connection.script('pragma foreign_keys = off')
    for (const table of tablesIn(connection)) {
      if (rowsOf(connection, `select 1 from ${table}`).length > 0) continue
      const [entry] = rowsOf(connection, `select sql from sqlite_schema where name = '${table}'`)
      const columns = rowsOf(connection, `select * from pragma_table_info('${table}')`).map((column) => ({
        name: String(column['name']),
        type: String(column['type']),
        required: column['notnull'] === 1 && column['dflt_value'] === null,
      }))
      connection.script(fillingRow(table, columns, firstWords(String(entry?.['sql']))))
    }
  })
}

/** Not the engine's own: what is in those is about this very connection. */
const ENGINES = new Set(['schema_migrations', 'writers'])

const tablesIn = (connection: Connection) =>
  rowsOf(connection, `select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name`)
    .map(({ name }) => String(name))
    .filter((name) => !ENGINES.has(name))

const contentAt = (path: string, tables: readonly string[]) =>
  opened(path, (connection) => tables.map((table) => rowsOf(connection, `select * from ${table}`)))

test('the released migrations are numbered from 1 without a gap', () => {
  expect(MIGRATIONS.map(({ number }) => number)).toEqual(MIGRATIONS.map((_, index) => index + 1))
})

test.each(MIGRATIONS.map((_, index) => index + 1))(
  'a database of the first %i migrations, upgraded, is like a fresh one and keeps its rows',
  (k) => {
    const [fresh, old] = [aPath(), aPath()]
    upTo(fresh, MIGRATIONS)
    upTo(old, MIGRATIONS.slice(0, k))
    fill(old)
    const tables = opened(old, tablesIn)
    expect(tables.length).toBeGreaterThanOrEqual(8 + k)
    const before = contentAt(old, tables)
    upTo(old, MIGRATIONS)
    expect(schemaAt(old)).toEqual(schemaAt(fresh))
    expect(schemaAt(fresh).length).toBeGreaterThan(20)
    const after = contentAt(old, tables)
    for (const [index, rows] of before.entries()) expect(after[index]).toMatchObject(rows)
    expect(before.map((rows) => rows.length)).toEqual(tables.map(() => 1))
  },
)

const made = (number: number, ...statements: string[]): Migration => ({
  number,
  name: `made-up-${number}`,
  statements: () => statements,
})

const FIRST = made(1, 'create table birds (name text primary key) strict')
const SECOND = made(2, 'alter table birds add column song text', 'create index by_song on birds (song)')
const THIRD = made(3, `update birds set song = 'la' where song is null`, 'create table nests (bird text) strict')
const BROKEN = made(3, 'create table nests (bird text) strict', 'alter table no_such_table add column x text')
const made123 = [FIRST, SECOND, THIRD]

describe('the runner, with made-up migrations', () => {
  test.each([1, 2, 3])('from %i to 3 is the same as 3 at once, and rows are carried along', (k) => {
    const [fresh, old] = [aPath(), aPath()]
    upTo(fresh, made123)
    upTo(old, made123.slice(0, k))
    opened(old, (connection) => connection.script(`insert into birds (name) values ('wren')`))
    upTo(old, made123)
    expect(schemaAt(old)).toEqual(schemaAt(fresh))
    const birds = opened(old, (connection) => rowsOf(connection, 'select name, song from birds'))
    expect(birds).toEqual([{ name: 'wren', song: k === 3 ? null : 'la' }])
  })

  test('each start in between leaves the same as one start for all', () => {
    const [stepwise, atOnce] = [aPath(), aPath()]
    for (const k of [1, 1, 2, 2, 3, 3]) upTo(stepwise, made123.slice(0, k))
    upTo(atOnce, made123)
    expect(schemaAt(stepwise)).toEqual(schemaAt(atOnce))
    const applied = opened(stepwise, (connection) => rowsOf(connection, 'select number, name from schema_migrations'))
    expect(applied).toEqual(made123.map(({ number, name }) => ({ number, name })))
  })

  test.each([0, 1, 2])('one that fails undoes the whole start, from a database with %i', (k) => {
    const path = aPath()
    upTo(path, made123.slice(0, k))
    const before = schemaAt(path)
    expect(() => upTo(path, [FIRST, SECOND, BROKEN])).toThrow(/no_such_table/)
    expect(schemaAt(path)).toEqual(before)
    upTo(path, made123)
    expect(schemaAt(path)).toContainEqual(expect.objectContaining({ name: 'nests' }))
  })

  test('a migration that was edited, and one that is not known, are refused before anything is done', () => {
    const path = aPath()
    upTo(path, [FIRST, SECOND])
    const before = schemaAt(path)
    const edited = made(2, 'alter table birds add column colour text')
    expect(() => upTo(path, [FIRST, edited, THIRD])).toThrowError(
      expect.objectContaining({ code: 'store/changed-migration' }),
    )
    expect(() => upTo(path, [FIRST])).toThrowError(expect.objectContaining({ code: 'store/newer-schema' }))
    expect(schemaAt(path)).toEqual(before)
  })
})

test('the list by which a database is known to be up to date is that of the migrations', () => {
  expect(SQLITE_CHECKSUMS).toEqual(MIGRATIONS.map((migration) => checksumOf(migration, SQLITE)))
  const path = aPath()
  upTo(path, MIGRATIONS)
  expect(opened(path, isUpToDate)).toBe(true)
  opened(path, (connection) => connection.script(`update schema_migrations set checksum = 'another' where number = 3`))
  expect(opened(path, isUpToDate)).toBe(false)
  const older = aPath()
  upTo(older, MIGRATIONS.slice(0, -1))
  expect(opened(older, isUpToDate)).toBe(false)
})

interface Words {
  readonly table: string
  readonly column: string
  readonly words: readonly string[]
}

const STATES: readonly Words[] = [
  { table: 'runs', column: 'state', words: RUN_STATES },
  { table: 'attempts', column: 'outcome', words: ATTEMPT_OUTCOMES },
  { table: 'threads', column: 'state', words: THREAD_STATES },
  { table: 'messages', column: 'state', words: MESSAGE_STATES },
  { table: 'workers', column: 'kind', words: WORKER_KINDS },
  { table: 'schedules', column: 'state', words: SCHEDULE_STATES },
  { table: 'schedules', column: 'kind', words: SCHEDULE_KINDS },
  { table: 'occurrences', column: 'state', words: OCCURRENCE_STATES },
  { table: 'occurrences', column: 'waits', words: WAITS },
  { table: 'workspaces', column: 'state', words: WORKSPACE_STATES },
  { table: 'workspaces', column: 'mode', words: WORKSPACE_MODES },
  { table: 'workspaces', column: 'wish', words: WISHES },
]

/** The words that a column's own check names, and the check itself, as the database has them. */
function checkOf(path: string, { table, column }: Words): { words: string[]; check: string } {
  const [entry] = opened(path, (connection) =>
    rowsOf(connection, `select sql from sqlite_schema where name = '${table}'`),
  )
  const one = `${column} = '\\w+'`
  const check = new RegExp(
    `\\n\\s*${column} text[^\\n]*(check \\((?:${column} in \\([^)]*\\)|${one}(?: or ${one})*)\\))`,
  ).exec(String(entry?.['sql']))!
  return { words: Array.from(check[1]!.matchAll(/'(\w+)'/g), ([, word]) => word!), check: check[1]! }
}

test('what a call and its steps write is compared, and looked up in no list', () => {
  const path = aPath()
  upTo(path, MIGRATIONS)
  opened(path, (connection) => {
    const changes = {
      runs: `insert into runs (id, thread_id, agent, state, kind, created_at, request, request_digest) values ('r', 't', 'a', 'queued', 'agent', 1, '', '')`,
      attempts: `update attempts set ended_at = 1, outcome = 'succeeded' where id = 'a'`,
      steps: `update steps set state = 'done', settled_at = 1 where run_seq = 1 and name = 's'`,
    }
    for (const [table, change] of Object.entries(changes)) {
      const asked = rowsOf(connection, `explain ${change}`).map(({ opcode }) => opcode)
      expect(asked.filter((opcode) => opcode === 'Eq' || opcode === 'Ne').length, table).toBeGreaterThan(3)
      // Of a table of words for a list: an index of runs that are no calls has one, and is not come to for a call.
      expect(asked.filter((opcode) => opcode === 'OpenEphemeral').length, table).toBe(table === 'runs' ? 1 : 0)
    }
  })
})

test('a lease is renewed in its row alone; an attempt that ends leaves what is under way, and moves in no other index', () => {
  const path = aPath()
  upTo(path, MIGRATIONS)
  opened(path, (connection) => {
    const touched = (change: string) =>
      rowsOf(connection, `explain ${change}`).filter(({ opcode }) => /^Idx(Insert|Delete)$/.test(String(opcode))).length
    expect(touched(`update attempts set lease_until = 1 where worker_id = 'w' and ended_at is null`)).toBe(0)
    // Two of them, each with what would put it back.
    expect(touched(`update attempts set ended_at = 1, outcome = 'succeeded' where id = 'a'`)).toBe(4)
  })
})

test.each(STATES)('$table, column $column: the database accepts exactly the words that the program knows', (each) => {
  const path = aPath()
  upTo(path, MIGRATIONS)
  const { words, check } = checkOf(path, each)
  expect(words.toSorted()).toEqual(each.words.toSorted())
  const foreign = [...STATES.flatMap((other) => other.words), 'Queued', '', 'done'].filter(
    (word) => !each.words.includes(word),
  )
  opened(path, (connection) => {
    connection.script(`create temp table tried (${each.column} text ${check}) strict`)
    for (const word of each.words) connection.script(`insert into tried values ('${word}')`)
    for (const word of foreign) {
      expect(() => connection.script(`insert into tried values ('${word}')`), word).toThrow(/CHECK/)
    }
  })
})
