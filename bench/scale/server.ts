/** What the server itself says while it works: what its sessions wait for, what it costs, what it is asked most. */
import { readFileSync, readdirSync } from 'node:fs'

import pg from 'pg'

export interface ServerReport {
  /** Of the looks at sessions that had something to do: how many waited for what. */
  readonly waits: Readonly<Record<string, number>>
  readonly cpuMs: number
  readonly commits: number
  readonly walBytes: number
  /** By which the database has grown. */
  readonly diskBytes: number
  /** The most connections of the workers at one look. */
  readonly connections: number
  /** By the time that they took together. */
  readonly statements: readonly { readonly text: string; readonly calls: number; readonly ms: number }[]
}

const LOOK_MS = 20

/** Clock ticks of /proc are hundredths of a second on Linux. */
const TICK_MS = 10

export class ServerWatch {
  readonly #client: pg.Client
  readonly #waits = new Map<string, number>()
  #connections = 0
  #timer: NodeJS.Timeout | undefined
  #begin = { commits: 0, wal: '0/0', cpuMs: 0, disk: 0 }
  #hasStatements = false
  #looking: Promise<void> | undefined

  constructor(url: string) {
    this.#client = new pg.Client({ connectionString: url.replace(/\?.*/, ''), application_name: 'watch' })
  }

  async begin(): Promise<void> {
    await this.#client.connect()
    this.#hasStatements = await this.#client
      .query('create extension if not exists pg_stat_statements; select pg_stat_statements_reset()')
      .then(() => true)
      .catch(() => false)
    this.#begin = await this.#now()
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    }, LOOK_MS)
  }

  async end(): Promise<ServerReport> {
    clearInterval(this.#timer)
    await this.#looking
    const now = await this.#now()
    const [wal] = (await this.#client.query('select pg_wal_lsn_diff($1, $2) as bytes', [now.wal, this.#begin.wal])).rows
    const statements = this.#hasStatements
      ? (
          await this.#client
            .query(`select regexp_replace(left(query, 160), '\\s+', ' ', 'g') as text, calls::int as calls,
            total_exec_time as ms from pg_stat_statements order by total_exec_time desc limit 12`)
        ).rows
      : []
    await this.#client.end()
    return {
      waits: Object.fromEntries([...this.#waits].toSorted((a, b) => b[1] - a[1])),
      cpuMs: now.cpuMs - this.#begin.cpuMs,
      commits: now.commits - this.#begin.commits,
      walBytes: Number(wal.bytes),
      diskBytes: now.disk - this.#begin.disk,
      connections: this.#connections,
      statements,
    }
  }

  async #now() {
    const { rows } = await this.#client.query<{ commits: string; wal: string; postmaster: number; disk: string }>(
      `select xact_commit as commits, pg_current_wal_insert_lsn()::text as wal, pg_backend_pid() as postmaster,
          pg_database_size(current_database()) as disk
        from pg_stat_database where datname = current_database()`,
    )
    return {
      commits: Number(rows[0]!.commits),
      wal: rows[0]!.wal,
      cpuMs: cpuOfSiblings(rows[0]!.postmaster),
      disk: Number(rows[0]!.disk),
    }
  }

  async #look(): Promise<void> {
    const { rows } = await this.#client
      .query<{ what: string; count: string }>(
        `select case when state = 'idle' then 'idle' when wait_event is null then 'cpu' else wait_event_type || ': ' || wait_event end as what,
          count(*) as count from pg_stat_activity where application_name = 'holdfast' group by 1`,
      )
      .catch(() => ({ rows: [] }))
    this.#connections = Math.max(
      this.#connections,
      rows.reduce((sum, { count }) => sum + Number(count), 0),
    )
    for (const { what, count } of rows) this.#waits.set(what, (this.#waits.get(what) ?? 0) + Number(count))
  }
}

/** Of all processes of the server that this one belongs to; those that have ended meanwhile are in their parent's. */
function cpuOfSiblings(backend: number): number {
  const [, parent] = statOf(backend)
  const family = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return family.reduce((sum, name) => {
    const [pid, ppid, ms] = statOf(Number(name))
    return ppid === parent || pid === parent ? sum + ms : sum
  }, 0)
}

function statOf(pid: number): [pid: number, parent: number, ms: number] {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ')
    const own = [11, 12].reduce((sum, at) => sum + Number(fields[at]), 0)
    return [pid, Number(fields[1]), own * TICK_MS]
  } catch {
    return [pid, 0, 0]
  }
}
