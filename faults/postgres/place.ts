import pg from 'pg'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { PostgresServer } from '../../test/support/postgres-server.ts'

/** Two sets of tables in one database: the workers take whatever is queued in theirs, so the load has its own. */
export const SCHEMAS = ['office', 'load'] as const

const SETTINGS = {
  // A deadlock is found soon: the usual second would be most of a case.
  deadlock_timeout: '50ms',
  // After a kill all files are synced, each by itself that is most of the time until it answers again.
  recovery_init_sync_method: process.platform === 'linux' ? 'syncfs' : 'fsync',
}

const TEMPLATE = 'holdfast_template'

/** One real server for a whole campaign, and a database for each case. */
export class Place {
  readonly server: PostgresServer

  private constructor(server: PostgresServer) {
    this.server = server
  }

  static async open({ fsync = true } = {}): Promise<Place> {
    const server = await PostgresServer.create({ fsync, settings: SETTINGS })
    const place = new Place(server)
    await place.query(`create database ${TEMPLATE}`)
    for (const schema of SCHEMAS) {
      const store = await openPostgresStore({ url: place.url(TEMPLATE, { schema }) })
      await store.close()
    }
    return place
  }

  close(): Promise<void> {
    return this.server.stop()
  }

  url(database: string, parameters: Readonly<Record<string, string>> = {}): string {
    return this.server.url(parameters).replace('/postgres?', `/${database}?`)
  }

  async makeDatabase(name: string): Promise<void> {
    await this.query(`create database ${name} template ${TEMPLATE}`)
  }

  async dropDatabase(name: string): Promise<void> {
    await this.query(`drop database ${name} with (force)`)
  }

  async connect(database: string): Promise<pg.Client> {
    const client = new pg.Client(this.url(database))
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** By a connection of its own, which nobody cuts. */
  async query<T extends Record<string, unknown>>(text: string, database = 'postgres'): Promise<T[]> {
    const client = await this.connect(database)
    try {
      const answers: unknown = await client.query(text)
      return (Array.isArray(answers) ? (answers.at(-1) as pg.QueryResult<T>) : (answers as pg.QueryResult<T>)).rows
    } finally {
      await client.end()
    }
  }
}
