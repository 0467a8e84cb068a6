import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import pg from 'pg'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Plan } from './plan.ts'

/** One case's database and folder, both gone after it. */
export interface Place {
  readonly url: string
  readonly folder: string
  remove(): Promise<void>
}

/** Copies of an empty database. */
export class Databases {
  readonly engines: readonly Plan['engine'][]
  readonly #folder: string
  readonly #server: pg.Pool | undefined
  readonly #serverUrl: string
  readonly #afterwards: () => Promise<void>
  #made = 0

  private constructor(folder: string, serverUrl: string | undefined, afterwards: () => Promise<void>) {
    this.#afterwards = afterwards
    this.#folder = folder
    this.#serverUrl = serverUrl ?? ''
    this.#server = serverUrl === undefined ? undefined : new pg.Pool({ connectionString: serverUrl, max: 2 })
    // The server may go while a connection is on its way out.
    this.#server?.on('error', () => {})
    // Two of three cases: its file is also the faster one.
    this.engines = serverUrl === undefined ? ['sqlite'] : ['sqlite', 'sqlite', 'postgres']
  }

  /** Without a server there is SQLite alone. `afterwards`: when the last of them was closed. */
  static async create(serverUrl?: string, afterwards = () => Promise.resolve()): Promise<Databases> {
    const made = new Databases(mkdtempSync(join(memoryDisk(), 'holdfast-zombies-')), serverUrl, afterwards)
    await (await openSqliteStore({ path: join(made.#folder, 'template.db') })).close()
    if (serverUrl === undefined) return made
    await made.#server?.query(`create database ${made.#template}`)
    await (await openPostgresStore({ url: made.#urlOf(made.#template) })).close()
    return made
  }

  /** Of this process alone: others may use the same server. */
  get #template(): string {
    return `zombies_${process.pid}`
  }

  #urlOf(database: string): string {
    const url = new URL(this.#serverUrl)
    url.pathname = database
    return url.href
  }

  async next(engine: Plan['engine']): Promise<Place> {
    const folder = join(this.#folder, String((this.#made += 1)))
    mkdirSync(folder)
    const removeFolder = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    if (engine === 'sqlite') {
      const path = join(folder, 'holdfast.db')
      copyFileSync(join(this.#folder, 'template.db'), path)
      return { url: `sqlite:${path}`, folder, remove: async () => removeFolder() }
    }
    const database = `${this.#template}_${this.#made}`
    await this.#server?.query(`create database ${database} template ${this.#template}`)
    const remove = async () => {
      removeFolder()
      await this.#server?.query(`drop database if exists ${database} with (force)`)
    }
    return { url: this.#urlOf(database), folder, remove }
  }

  async close(): Promise<void> {
    await this.#server?.query(`drop database if exists ${this.#template} with (force)`).catch(() => {})
    await this.#server?.end()
    await this.#afterwards()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const memoryDisk = () => (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
