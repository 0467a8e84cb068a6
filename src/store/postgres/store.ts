import type { Client, Pool } from 'pg'

import { systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import { systemRandomness } from '../../base/ids.ts'
import type { Randomness } from '../../base/ids.ts'
import { sql, writesSomething } from '../sql.ts'
import type { TextCodec } from '../codec.ts'
import type { ChangeListener, HoldingProbe, Store } from '../store.ts'
import { begun, oneByOne, run, single } from '../transition.ts'
import type { Change, Query } from '../transition.ts'
import { explain, isPreparedForAnother, restartsFor } from './errors.ts'
import { GroupCommit } from './group-commit.ts'
import { migratePostgres } from './migrate.ts'
import { localSettings, parsePostgresUrl } from './settings.ts'
import type { PostgresSettings } from './settings.ts'
import { Renderer } from './statement.ts'
import type { Request } from './statement.ts'
import { Wake } from './wake.ts'

export interface PostgresOptions {
  readonly url: string
  readonly clock?: Clock
  readonly random?: Randomness
  readonly probe?: HoldingProbe
  readonly codec?: TextCodec
  /** `pg`, unless somebody brings connections of their own. */
  readonly driver?: Driver
}

type Driver = { readonly Pool: typeof Pool; readonly Client: typeof Client }

/** PostgreSQL: any number of machines on one database. */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { clock = systemClock, random = systemRandomness, probe } = options
  const settings = parsePostgresUrl(options.url)
  const driver = options.driver ?? (await loadDriver())
  const pool = new driver.Pool(settings.pool)
  // An idle connection that breaks is replaced; the error belongs to nobody. One that is in use says so to its queries.
  pool.on('error', () => {})
  // One that breaks in use fails its requests; unheard, the same error would end the process as well.
  pool.on('connect', (client) => void client.on('error', () => {}))
  try {
    await migratePostgres(pool, settings.schema)
  } catch (error) {
    await pool.end()
    throw explain(error)
  }
  const connect = async () => {
    const client = new driver.Client({ ...settings.pool, pipeline: false })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const wake = new Wake({
    pool,
    clock,
    channel: `${settings.schema}_changed`,
    self: random.hex(8),
    connect: settings.pooled ? undefined : connect,
  })
  const renderer = new Renderer({ named: !settings.pooled, codec: options.codec })
  const commits = new GroupCommit({
    pool,
    clock,
    random,
    renderer,
    // Behind a pooler the session's own settings are not ours.
    opening: openingOf(settings, settings.pooled ? 'begin isolation level read committed' : 'begin'),
    onCommit: (topics) => wake.announce(topics),
    ...(probe === undefined ? {} : { probe }),
  })
  return new PostgresStore(pool, settings, renderer, commits, wake)
}

function openingOf(settings: PostgresSettings, begin: string): Request[] {
  return [begin, ...(settings.pooled ? localSettings(settings) : [])].map((text) => ({ text }))
}

/** Whether the database answers at all. */
const anything = single(() => run(sql`select 1`))

class PostgresStore implements Store {
  readonly engine = 'postgres'
  readonly #pool: Pool
  readonly #settings: PostgresSettings
  readonly #renderer: Renderer
  readonly #commits: GroupCommit
  readonly #wake: Wake
  #closed = false

  constructor(pool: Pool, settings: PostgresSettings, renderer: Renderer, commits: GroupCommit, wake: Wake) {
    this.#pool = pool
    this.#settings = settings
    this.#renderer = renderer
    this.#commits = commits
    this.#wake = wake
  }

  apply<Args extends readonly unknown[], T>(change: Change<Args, T>, ...args: Args): Promise<T> {
    return this.#commits.submit(change, args)
  }

  async read<Args extends readonly unknown[], T>(look: Change<Args, T>, ...args: Args): Promise<T> {
    if (this.#closed) throw new HoldfastError('store/closed', 'this store was closed', { remedy: 'open it again' })
    for (let asked = 1; ; asked++) {
      try {
        if (typeof look !== 'function' && !this.#settings.pooled) return await this.#readOne(look.single(...args))
        return await this.#readSnapshot(oneByOne(begun(look, args)))
      } catch (error) {
        if (!isPreparedForAnother(error) || asked > restartsFor(error)) throw explain(error)
      }
    }
  }

  onChange(listener: ChangeListener): () => void {
    return this.#wake.listen(listener)
  }

  /** The server keeps its log ready by itself. */
  async warmUp(): Promise<void> {}

  async check(): Promise<string[]> {
    await this.read(anything)
    return []
  }

  async copyTo(): Promise<void> {
    throw new HoldfastError('usage/backup', 'a PostgreSQL store is copied by its own tools', {
      remedy: `pg_dump --format=custom --schema=${this.#settings.schema} --file=FILE URL makes a consistent copy while everything runs (docs/backups.md)`,
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#commits.close()
    await this.#wake.close()
    await this.#pool.end()
  }

  async #readOne<T>(query: Query<T>): Promise<T> {
    const request = this.#readOnly(query)
    const answer = await this.#pool.query(request as { text: string; values: unknown[] })
    this.#renderer.opened([answer])
    return query.read({ rows: answer.rows, changes: 0 })
  }

  async #readSnapshot<T>(transition: Generator<Query<unknown>, T, unknown>): Promise<T> {
    const client = await this.#pool.connect()
    let broken = true
    try {
      for (const { text } of openingOf(this.#settings, 'begin isolation level repeatable read read only'))
        await client.query(text)
      let step = transition.next()
      while (step.done !== true) {
        const answer = await client.query(this.#readOnly(step.value) as { text: string; values: unknown[] })
        this.#renderer.opened([answer])
        step = transition.next(step.value.read({ rows: answer.rows, changes: 0 }))
      }
      await client.query('rollback')
      broken = false
      return step.value
    } finally {
      client.release(broken)
    }
  }

  #readOnly(query: Query<unknown>): Request {
    const request = this.#renderer.request(query.sql)
    if (writesSomething(request.text)) {
      throw new HoldfastError('store/read-only-look', `a read tried to write: ${request.text}`, {
        remedy: 'use apply for changes',
      })
    }
    return request
  }
}

async function loadDriver(): Promise<Driver> {
  try {
    const { default: driver } = await import('pg')
    return driver
  } catch (cause) {
    throw new HoldfastError('store/no-driver', 'the PostgreSQL driver is not installed', {
      remedy: 'npm install pg',
      cause,
    })
  }
}
