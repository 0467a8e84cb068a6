import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'

import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import { SQLITE } from '../../src/store/migrations/migration.ts'
import { parsePostgresUrl } from '../../src/store/postgres/settings.ts'
import { Renderer } from '../../src/store/postgres/statement.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { BIG_TABLES, bigHistory } from '../support/big-history.ts'
import { hurriedClock } from '../support/clocks.ts'
import { aDayOfWork } from '../support/day-of-work.ts'
import { withParameters } from '../support/engines.ts'
import { someCalls } from '../support/some-calls.ts'
import { overheard, recordingStore } from '../support/recording-store.ts'
import type { Recording } from '../support/recording-store.ts'

/*
 * No statement of ours may read through a table that grows. What is asked is not listed here but heard: a day of work is done
 * in a small database, and each statement that was asked is explained by a large one.
 */

const SIZE =
  process.env['HOLDFAST_DEEP'] === undefined
    ? { threads: 10_000, runs: 100_000 }
    : { threads: 100_000, runs: 1_000_000 }

/** Those that may read through one, and why. */
const MAY: readonly { readonly what: RegExp; readonly because: string }[] = [
  {
    what: /^insert into workers /,
    because: 'SQLite: the children of a new parent are looked at only while a reference is broken',
  },
  {
    what: /^select state, count\(\*\) as count from (runs|messages) group by state/,
    because: 'a count of all there is, by an index alone',
  },
  {
    what: /^select \* from schedules where (state in|name =)/,
    because: 'a page of schedules, asked for by a person: there are as many as people made',
  },
  {
    what: /^select \* from occurrences where state in/,
    because: 'a page of the ledger over all schedules, asked for by a person',
  },
  {
    what: /^select \* from actions where .* order by id desc limit/,
    because: 'a page of actions by a state, asked for by a person',
  },
  { what: /^delete from acts where id in/, because: 'the first few in the order of their key' },
  {
    what: /from threads t left join runs r .* order by t.created_at desc, t.id desc limit/,
    because:
      'a page of threads in the order of an index: those that were removed are passed over, and forgotten in time',
  },
  {
    what: /^select \* from runs where .* and agent = \S+ and .* order by seq desc limit/,
    because: 'a page of an agent that the planner takes for a common one, asked for by a person',
  },
]
const mayReadThrough = (text: string) => MAY.some(({ what }) => what.test(text))

let heard: Recording
let prepared: ReadonlySet<string>

beforeAll(async () => {
  const clock = hurriedClock()
  const home = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  const textOf = (given: unknown) => (typeof given === 'string' ? given : undefined)
  prepared = await overheard(DatabaseSync.prototype, 'prepare', textOf, async () => {
    const store = await openSqliteStore({ path: ':memory:', clock })
    heard = recordingStore(store)
    await aDayOfWork({ store: heard.store, clock, home })
    await store.close()
  })
  return () => rmSync(home, { recursive: true, force: true })
}, 120_000)

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

test('a day of work asks some hundreds of statements', () => {
  expect(heard.statements.size).toBeGreaterThan(300)
  expect(prepared.size).toBeGreaterThan(300)
})

/** `from runs r` and `from runs as r` say r, `from runs` says runs. */
function aliasesIn(text: string): Map<string, string> {
  const words = 'where|on|set|join|left|order|group|limit|using|values|select|and|union|returning'
  const found = text.matchAll(
    new RegExp(`\\b(?:from|join|update|into)\\s+(\\w+)(?:\\s+as)?(?:\\s+(?!(?:${words})\\b)(\\w+))?`, 'g'),
  )
  return new Map(
    [...found].flatMap(
      ([, table, name]) =>
        [
          [table!, table!],
          [name ?? table!, table!],
        ] as [string, string][],
    ),
  )
}

/** A look at the first few in an order that an index has, with nothing to pass over. */
const isFirstFew = (text: string, plan: readonly string[]) =>
  /\blimit \S+\)?( as \w+)?/.test(text) &&
  !/\bwhere (?!1 = 1)/.test(text.replaceAll(/1 = 1 and /g, '')) &&
  !plan.some((line) => /TEMP B-TREE FOR ORDER/.test(line))

function readThroughBySqlite(database: DatabaseSync, partial: ReadonlySet<string>, text: string): string[] {
  const aliases = aliasesIn(text)
  const plan = (database.prepare(`explain query plan ${text}`).all() as { detail: string }[]).map(
    ({ detail }) => detail,
  )
  return plan.filter((detail) => {
    // A state alone is a good way to what is under way, and none to what is over, nor to one thread's.
    if (
      /_by_state \(state=\?\)/.test(detail) &&
      /'(consumed|succeeded|done)'|(thread|thread_id|\bid) (= \?|in \('msg)/.test(text)
    )
      return true
    const [, name, , index] = /^SCAN (\w+)( USING (?:COVERING )?INDEX (\w+))?/.exec(detail) ?? []
    if (name === undefined || !BIG_TABLES.has(aliases.get(name) ?? name)) return false
    // Of a partial index all is what is under way.
    return !(index !== undefined && partial.has(index)) && !isFirstFew(oneLine(text), plan)
  })
}

/** A question or a change; not a setting, nor what makes the tables. */
const isOurs = (text: string) =>
  /^\s*(select|insert|update|delete|with)\b/i.test(text) && !/sqlite_schema|schema_migrations|writers/.test(text)

test('no statement reads through a table that grows on SQLite, whose plans do not depend on what is in it', () => {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  // One of them says anew what a table's checks are.
  database.enableDefensive(false)
  for (const migration of MIGRATIONS) for (const statement of migration.statements(SQLITE)) database.exec(statement)
  const partial = new Set(
    (
      database.prepare(`select name from sqlite_schema where type = 'index' and sql like '% where %'`).all() as {
        name: string
      }[]
    ).map(({ name }) => name),
  )
  const found = [...prepared].filter(isOurs).flatMap((text) => {
    const scans = readThroughBySqlite(database, partial, text)
    return scans.length === 0 || mayReadThrough(oneLine(text)) ? [] : [`${scans.join(', ')}: ${oneLine(text)}`]
  })
  expect(found).toEqual([])
})

test('on SQLite a run of an agent that is under way is found by itself, and not among all that its thread ever had', () => {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  database.enableDefensive(false)
  for (const migration of MIGRATIONS) for (const statement of migration.statements(SQLITE)) database.exec(statement)
  // All calls of a function share a thread.
  const asking = [...prepared].filter(
    (text) => isOurs(text) && /kind = 'agent' and (\w+\.)?state in \('queued'/.test(text),
  )
  expect(asking.length).toBeGreaterThan(1)
  const passedBy = asking.filter((text) => {
    const plan = database.prepare(`explain query plan ${text}`).all() as { detail: string }[]
    return !plan.some(({ detail }) => /USING INDEX runs_one_agent \(thread_id=\?\)/.test(detail))
  })
  expect(passedBy.map(oneLine)).toEqual([])
  const numbers = database.prepare(`select count(*) as n from sqlite_stat1 where idx = 'runs_one_agent'`).get()
  expect(numbers).toEqual({ n: 1 })
})

/** Indexes are made when the rows are there: that takes a third of the time. */
async function fill(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ name: string; text: string }>(
    `select indexname as name, indexdef as text from pg_indexes where schemaname = $1 and tablename = any($2)
      and indexname not in (select conname from pg_constraint)`,
    [schema, [...BIG_TABLES]],
  )
  await client.query(`begin; ${rows.map(({ name }) => `drop index ${name};`).join(' ')} ${bigHistory(SIZE)} commit`)
  await client.query(rows.map(({ text }) => `${text};`).join(' '))
  await client.query(`analyze ${[...BIG_TABLES].join(', ')}`)
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Filter?: string
  readonly Plans?: readonly PlanNode[]
}

describe('on PostgreSQL, with 10,000 threads and 100,000 runs', () => {
  let client: pg.Client
  let partial: ReadonlySet<string>
  let requests: readonly string[]

  beforeAll(async () => {
    const schema = `plans_${process.pid}`
    const url = withParameters(inject('postgres'), { schema })
    const store = await openPostgresStore({ url })
    const textOf = (given: unknown) => (given as { readonly text?: string }).text
    const together = await overheard(pg.Client.prototype, 'query', textOf, () => someCalls(store, 20))
    await store.close()
    client = new pg.Client(parsePostgresUrl(url).pool)
    await client.connect()
    await client.query('set synchronous_commit to off')
    await fill(client, schema)
    const indexes = await client.query(
      `select indexrelid::regclass::text as name from pg_index where indpred is not null`,
    )
    partial = new Set(indexes.rows.map(({ name }: { name: string }) => name))
    const renderer = new Renderer({ named: false })
    const singles = [...heard.statements.values()].map((statement) => renderer.request(statement).text)
    requests = [...singles.filter((text) => !text.includes('/* given */')), ...together].filter(isOurs)
    return async () => {
      await client.query(`drop schema ${schema} cascade`)
      await client.end()
    }
  }, 120_000)

  /** As it is kept: a plan that was made without the values. */
  async function planOf(text: string): Promise<PlanNode> {
    const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
    await client.query(`prepare looked as ${text}`)
    const values = count === 0 ? '' : `(${Array.from({ length: count }, () => 'null').join(', ')})`
    const { rows } = await client.query(`explain (format json, costs off) execute looked${values}`)
    await client.query('deallocate looked')
    return (rows[0] as { 'QUERY PLAN': [{ Plan: PlanNode }] })['QUERY PLAN'][0].Plan
  }

  /** A sequential scan, or all of an index, of a table that grows; under a limit all of an index is its beginning, if nothing is passed over. */
  function readThrough(node: PlanNode, limited = false): string[] {
    const { 'Relation Name': table, 'Node Type': type, 'Index Name': index } = node
    const below = (node.Plans ?? []).flatMap((each) =>
      readThrough(each, type === 'Limit' || (limited && !/Sort|Aggregate|Hash/.test(type))),
    )
    if (table === undefined || !BIG_TABLES.has(table)) return below
    const isAll = type === 'Seq Scan' || (/Index/.test(type) && node['Index Cond'] === undefined)
    const isFew =
      (index !== undefined && partial.has(index)) || (limited && type !== 'Seq Scan' && node.Filter === undefined)
    return isAll && !isFew ? [...below, `${type} on ${table}${index === undefined ? '' : ` by ${index}`}`] : below
  }

  test.each([
    ['with the settings of our sessions', []],
    [
      'with the planner free to choose, as behind a pooler',
      ['set enable_seqscan to on', 'set enable_bitmapscan to on'],
    ],
  ])(
    'no statement reads through a table that grows, %s',
    async (_, settings) => {
      await client.query('set plan_cache_mode to force_generic_plan')
      for (const setting of settings) await client.query(setting)
      const found: string[] = []
      for (const text of requests) {
        const scans = readThrough(await planOf(text))
        if (scans.length > 0 && !mayReadThrough(oneLine(text))) found.push(`${scans.join(', ')}: ${oneLine(text)}`)
      }
      expect(found).toEqual([])
    },
    120_000,
  )
})
