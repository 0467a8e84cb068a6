/** The limit of the store, as the peers' benchmark has it (`raw-sqlite`): rows of hand-made tables, 64 a commit, no engine. */
import { DatabaseSync } from 'node:sqlite'
import type { SQLInputValue, StatementSync } from 'node:sqlite'

import { inTurns } from './workloads.ts'
import type { Watch } from './watch.ts'

const TABLES = `
  create table wf (id text primary key, steps int, done int not null default 0) without rowid;
  create table step (wf text, i int, out text, primary key (wf, i)) without rowid;
  create table job (id text primary key, due real) without rowid;
  create index job_due on job (due)`
const STATEMENTS = {
  wf: 'insert into wf (id, steps) values (?, ?)',
  step: 'insert into step (wf, i, out) values (?, ?, ?)',
  done: 'update wf set done = 1 where id = ?',
  add: 'insert into job (id, due) values (?, ?)',
  delete: 'delete from job where id = ?',
} as const
type Kind = keyof typeof STATEMENTS

const TOGETHER = 64
const IN_BULK = 500
/** How often the peers' benchmark looks for what is due. */
const LOOK_EVERY_MS = 5

class RawSqlite {
  readonly #database: DatabaseSync
  readonly #statements = new Map<Kind, StatementSync>()
  readonly #due: StatementSync
  readonly #waiting: { readonly kind: Kind; readonly values: readonly SQLInputValue[]; readonly done: () => void }[] =
    []

  constructor(path: string) {
    this.#database = new DatabaseSync(path)
    this.#database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000')
    this.#database.exec(TABLES)
    for (const [kind, text] of Object.entries(STATEMENTS))
      this.#statements.set(kind as Kind, this.#database.prepare(text))
    this.#due = this.#database.prepare('select id from job where due <= ? order by due limit ?')
  }

  /** What is asked for in one turn of the event loop is one commit, up to 64. */
  write(kind: Kind, ...values: SQLInputValue[]): Promise<void> {
    return new Promise((done) => {
      if (this.#waiting.push({ kind, values, done }) === 1) setImmediate(() => this.#flush())
    })
  }

  #flush(): void {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, TOGETHER)
      this.commit(batch.map(({ kind, values }) => [kind, values]))
      for (const { done } of batch) done()
    }
  }

  commit(rows: readonly (readonly [Kind, readonly SQLInputValue[]])[]): void {
    this.#database.exec('begin immediate')
    for (const [kind, values] of rows) this.#statements.get(kind)!.run(...values)
    this.#database.exec('commit')
  }

  addAll(jobs: readonly (readonly [id: string, due: number])[]): void {
    for (let from = 0; from < jobs.length; from += IN_BULK)
      this.commit(jobs.slice(from, from + IN_BULK).map((job) => ['add', job]))
  }

  /** Those that are due are gone; returns how many there were. */
  take(now: number): number {
    const rows = this.#due.all(now, TOGETHER) as { id: string }[]
    if (rows.length > 0) this.commit(rows.map(({ id }) => ['delete', [id]]))
    return rows.length
  }

  close(): void {
    this.#database.close()
  }
}

async function withRaw(path: string, work: (raw: RawSqlite) => Promise<void>): Promise<void> {
  const raw = new RawSqlite(path)
  try {
    await work(raw)
  } finally {
    raw.close()
  }
}

const jobs = (count: number) => Array.from({ length: count }, (_, index) => [`j${index}`, 0] as const)

export const rawSteps = (path: string, flows: number, steps: number, watch: Watch) =>
  withRaw(path, async (raw) => {
    watch.begin()
    await inTurns(flows, TOGETHER, async (flow) => {
      await raw.write('wf', `wf-${flow}`, steps)
      for (let step = 0; step < steps; step += 1)
        await raw.write('step', `wf-${flow}`, step, JSON.stringify({ ok: step }))
      await raw.write('done', `wf-${flow}`)
    })
    watch.end()
  })

export const rawSingles = (path: string, count: number, watch: Watch) =>
  withRaw(path, async (raw) => {
    watch.begin()
    await inTurns(count, TOGETHER, (index) => raw.write('add', `j${index}`, 0))
    watch.end()
  })

export const rawBulk = (path: string, count: number, watch: Watch) =>
  withRaw(path, async (raw) => {
    watch.begin()
    raw.addAll(jobs(count))
    watch.end()
  })

export const rawDrain = (path: string, count: number, watch: Watch) =>
  withRaw(path, async (raw) => {
    raw.addAll(jobs(count))
    watch.begin()
    // The same chance for the rest of the process to run as the peers' benchmark gives it.
    while (raw.take(0) > 0) await new Promise((resolve) => setImmediate(resolve))
    watch.end()
  })

/** The waiting is left out, the looking is not. */
export const rawDue = (path: string, instants: readonly number[], watch: Watch) =>
  withRaw(path, async (raw) => {
    raw.addAll(instants.map((at, index) => [`d${index}`, at]))
    const last = Math.max(...instants)
    watch.begin()
    for (let now = 0; now < last + LOOK_EVERY_MS; now += LOOK_EVERY_MS) while (raw.take(now) > 0);
    watch.end()
  })
