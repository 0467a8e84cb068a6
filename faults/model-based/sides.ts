import pg from 'pg'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { raw } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { PostgresServer } from '../../test/support/postgres-server.ts'
import { TABLES } from '../../test/support/tables.ts'

/** After so many sequences the rows that were deleted are cleared away: everything that reads gets slower by them. */
const VACUUM_AFTER = 100

/** Its identity stays: a store has it from its beginning. */
const EMPTIED = TABLES.filter((table) => table !== 'store_identity' && table !== 'retention').toReversed()

function* empty(): Transition<void> {
  for (const table of EMPTIED) yield* run(raw(`delete from ${table}`))
}

/** Both engines, emptied between sequences, on one clock that only the sequence moves. */
export class Sides {
  readonly clock = new FakeClock()
  readonly stores: readonly [sqlite: Store, postgres: Store]
  readonly #keeper: pg.Client
  readonly #schema: string
  #uses = 0

  private constructor(sqlite: Store, postgres: Store, keeper: pg.Client, schema: string, clock: FakeClock) {
    this.stores = [sqlite, postgres]
    this.#keeper = keeper
    this.#schema = schema
    this.clock = clock
  }

  static async open(server: string, schema: string): Promise<Sides> {
    const clock = new FakeClock()
    const sqlite = await openSqliteStore({ path: ':memory:', clock })
    const address = new URL(server)
    address.searchParams.set('schema', schema)
    const postgres = await openPostgresStore({ url: address.href })
    const keeper = new pg.Client(server)
    await keeper.connect()
    // A sequence, not a row: it leaves nothing behind when it is set.
    await keeper.query(`create sequence ${schema}.clock;
      create or replace function ${schema}.now_ms() returns bigint language sql volatile as 'select last_value from ${schema}.clock'`)
    const deletes = EMPTIED.map((table) => `delete from ${schema}.${table};`).join(' ')
    await keeper.query(`create function ${schema}.empty_all() returns void language plpgsql as 'begin ${deletes} end'`)
    return new Sides(sqlite, postgres, keeper, schema, clock)
  }

  async begin(): Promise<void> {
    const [sqlite] = this.stores
    await Promise.all([sqlite.apply(empty), this.#keeper.query(this.#emptying())])
    await this.pass(1)
    this.#uses += 1
    const tables = EMPTIED.map((table) => `${this.#schema}.${table}`)
    if (this.#uses % VACUUM_AFTER === 0)
      await this.#keeper.query(`vacuum ${[...tables, `${this.#schema}.writers`].join(', ')}`)
  }

  /** A function: a round trip for each table would take as long as the sequence, and so would planning all of them. */
  readonly #emptying = () => ({ name: 'empty', text: `select ${this.#schema}.empty_all()` })

  async pass(ms: number): Promise<void> {
    this.clock.advance(ms)
    const text = `select setval('${this.#schema}.clock', $1)`
    await this.#keeper.query({ name: 'pass', text, values: [this.clock.now()] })
  }

  async close(): Promise<void> {
    for (const store of this.stores) await store.close()
    await this.#keeper.end()
  }
}

export const aServer = (): Promise<PostgresServer> => PostgresServer.create({ fsync: false })
