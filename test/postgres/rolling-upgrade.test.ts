import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'

import { finishRun } from '../../src/runs/finish.ts'
import { findRun } from '../../src/runs/run.ts'
import { MIGRATIONS } from '../../src/store/migrations/index.ts'
import type { Migration } from '../../src/store/migrations/migration.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'
import { parsePostgresUrl } from '../../src/store/postgres/settings.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { addWorker, claim, running, submitted } from '../support/world.ts'

const postgres = engines.find(({ name }) => name === 'postgres')!

/** What the next version might bring: migrations only add. */
const next: Migration = {
  number: MIGRATIONS.at(-1)!.number + 1,
  name: 'the-next-version',
  statements: (d) => [
    `alter table runs add column mood text not null default 'calm'`,
    `create table moods (id ${d.key} primary key)${d.tableEnd}`,
    `create index runs_by_mood on runs (mood)`,
  ],
}

describe('a rolling upgrade', () => {
  test('workers of the old version go on while a machine with the new one migrates; newcomers of the old one are refused', async () => {
    const database = await postgres.database()
    const [old, another] = [await database.open(), await database.open()]
    const held = await running(old)
    const { pool: settings, schema } = parsePostgresUrl(database.url)
    const pool = new pg.Pool(settings)
    onTestFinished(() => pool.end())
    const working = Promise.all(Array.from({ length: 30 }, () => submitted(another)))
    await migratePostgres(pool, schema, [...MIGRATIONS, next])
    await working
    expect(await old.apply(finishRun, held.ref, { state: 'succeeded' })).toMatchObject({ kind: 'finished' })
    const workerId = await addWorker(another)
    for (let claimed = 0; claimed < 30; claimed++) {
      const { run, attempt } = (await claim(another, workerId))!
      await old.apply(finishRun, { id: attempt.id, runId: run.id, fence: run.fence }, { state: 'succeeded' })
    }
    await assertInvariants(old)
    await expect(database.open()).rejects.toMatchObject({ code: 'store/newer-schema' })
  })

  test('what a connection had prepared before a table got a column is asked again, by whoever reads and whoever writes', async () => {
    const database = await postgres.database()
    // With connections of its own: those that the tests keep warm are never let go.
    const store = await openPostgresStore({ url: database.url })
    onTestFinished(() => store.close())
    const ids = await Promise.all(Array.from({ length: 30 }, () => submitted(store)))
    const workerId = await addWorker(store)
    const all = () => Promise.all(ids.map(({ id }) => store.read(findRun, id)))
    const claims = () => Promise.all(Array.from({ length: 10 }, () => claim(store, workerId)))
    // By several connections at once.
    await all()
    await claims()
    const { pool: settings, schema } = parsePostgresUrl(database.url)
    const pool = new pg.Pool(settings)
    onTestFinished(() => pool.end())
    await migratePostgres(pool, schema, [...MIGRATIONS, next])
    expect(await all()).toHaveLength(30)
    expect((await claims()).filter((claimed) => claimed !== undefined)).toHaveLength(10)
  })

  test('a machine that is still on the first migrations is brought up to date with its rows', async () => {
    const database = await postgres.database()
    const { pool: settings, schema } = parsePostgresUrl(database.url)
    const pool = new pg.Pool(settings)
    onTestFinished(() => pool.end())
    await migratePostgres(pool, schema, MIGRATIONS.slice(0, 1))
    await pool.query(`insert into threads (id, agent, created_at) values ('kept', 'a', 1)`)
    await Promise.all(Array.from({ length: 4 }, () => migratePostgres(pool, schema)))
    const { rows } = await pool.query<{ number: string }>('select number from schema_migrations order by number')
    expect(rows.map(({ number }) => Number(number))).toEqual(MIGRATIONS.map(({ number }) => number))
    expect((await pool.query(`select id from threads`)).rows).toEqual([{ id: 'kept' }])
  })
})
