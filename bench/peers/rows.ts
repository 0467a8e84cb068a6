/**
 * The rows that Holdfast keeps of a call and of its steps on SQLite, by a program that is written for nothing else: the same tables, the
 * same guards, the same commits, each synced; a promise for each step, and a few statements a commit. Nobody could cancel a run of it,
 * take one over, or have a secret kept out of it. So it is what an engine that keeps these rows may cost nothing beside.
 *
 * That they are the same rows is tested: test/claims/limits.test.ts.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'

const COLUMNS = {
  calls: ['id', 'agent', 'input'],
  attempts: ['id', 'run_id', 'worker_id'],
  firsts: ['run_id', 'name'],
  done: ['run_seq', 'name', 'result'],
  begun: ['run_seq', 'name'],
  ends: ['seq', 'result'],
  attemptEnds: ['id', 'outcome'],
  events: ['type', 'thread_id', 'run_id', 'run_seq', 'data'],
} as const
type Kind = keyof typeof COLUMNS

/** In the order in which a commit asks them; `now` is the place of the value behind the given ones. */
const STATEMENTS: Readonly<Record<Kind, (now: string) => string>> = {
  calls: (
    now,
  ) => `insert into runs (id, thread_id, agent, state, priority, request, request_digest, kind, input, created_at, fence, attempt, started_at)
    select id, 'calls:' || agent, agent, 'running', 0, '{"kind":"agent"}', '', 'agent', input, ${now}, 1, 1, ${now} from given where true
    on conflict do nothing returning id, seq`,
  attempts: (now) => `insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until)
    select given.id, given.run_id, 1, 1, given.worker_id, given.id, '[]', ${now}, ${now} + 15000 from given
    where (select fence = 1 and state = 'running' from runs where runs.id = given.run_id) on conflict do nothing`,
  firsts: (now) => `insert into steps (run_seq, name, effect, state, tries, started_at)
    select runs.seq, given.name, 'write', 'started', 1, ${now} from given, runs
    where runs.id = given.run_id and runs.fence = 1 and runs.state = 'running' on conflict do nothing`,
  done: (
    now,
  ) => `update steps set state = 'done', result = given.result, error = null, settled_by = null, settled_at = ${now}
    from given where steps.run_seq = given.run_seq and steps.name = given.name and steps.tries = 1 and steps.state = 'started'`,
  begun: (now) => `insert into steps (run_seq, name, effect, state, tries, started_at)
    select given.run_seq, given.name, 'write', 'started', 1, ${now} from given
    where (select fence = 1 and state = 'running' and cancel_requested_at is null from runs where runs.seq = given.run_seq)
    on conflict do nothing`,
  ends: (now) => `update runs set state = 'succeeded', ended_at = ${now}, result = given.result from given
    where runs.seq = given.seq and runs.fence = 1 and case when runs.state = 'running' then 1 else 0 end = 1
      and runs.cancel_requested_at is null`,
  attemptEnds: (now) => `update attempts set ended_at = ${now}, outcome = given.outcome from given
    where attempts.id = given.id and case when attempts.ended_at is null then 1 else 0 end = 1`,
  events: (now) =>
    `insert into events (at, type, thread_id, run_id, run_seq, data) select ${now}, type, thread_id, run_id, run_seq, data from given`,
}
const KINDS = Object.keys(STATEMENTS) as Kind[]

/** As in the product: more rows in a statement are hardly cheaper each. */
const MOST_ROWS_LOG2 = 6

type Step = (id: string, index: number) => unknown
const forEach = <T>(make: () => T) => Object.fromEntries(KINDS.map((kind) => [kind, make()])) as Record<Kind, T>

export class Rows {
  readonly #database: DatabaseSync
  readonly #randomId: () => string
  readonly #worker: string
  readonly #prepared = new Map<string, StatementSync>()
  #batch = 0
  #waiting: (() => void)[] = []
  readonly #given = forEach((): SQLInputValue[] => [])
  readonly #asked = forEach(() => 0)
  /** The number of each run that was just stored, by its id. */
  readonly #seqs = new Map<string, number>()

  constructor(database: DatabaseSync, randomId: () => string, worker: string) {
    this.#database = database
    this.#randomId = randomId
    this.#worker = worker
  }

  /** As the flow of `holdfast.mjs`. */
  async run(id: string, steps: number, step: Step): Promise<string> {
    const [run, attempt] = [`run_${this.#randomId()}`, `att_${this.#randomId()}`]
    const seq = await this.#begin(run, attempt, JSON.stringify({ id, steps }))
    for (let index = 0; index < steps; index += 1) {
      this.#give('done', seq, `s${index}`, JSON.stringify(step(id, index)))
      this.#tell('step.recorded', null, null, seq, { step: `s${index}`, state: 'done' })
      if (index + 1 === steps) break
      this.#give('begun', seq, `s${index + 1}`)
      await this.#committed()
    }
    this.#give('ends', seq, JSON.stringify(id))
    this.#give('attemptEnds', attempt, 'succeeded')
    this.#tell('run.finished', 'calls:flow', null, seq, { state: 'succeeded', agent: 'flow' })
    await this.#committed()
    return id
  }

  /** The call, its claim and the intent of its first step. */
  async #begin(run: string, attempt: string, input: string): Promise<number> {
    this.#give('calls', run, 'flow', input)
    this.#give('attempts', attempt, run, this.#worker)
    this.#give('firsts', run, 's0')
    this.#tell('run.queued', 'calls:flow', run, null, { agent: 'flow', priority: 0 })
    this.#tell('run.started', 'calls:flow', run, null, { attempt: 1, fence: 1, workerId: this.#worker })
    await this.#committed()
    const seq = this.#seqs.get(run)!
    this.#seqs.delete(run)
    return seq
  }

  #give(kind: Kind, ...values: readonly SQLInputValue[]): void {
    this.#given[kind].push(...values)
    this.#asked[kind] += 1
  }

  #tell(type: string, thread: string | null, run: string | null, seq: number | null, data: object): void {
    this.#give('events', type, thread, run, seq, JSON.stringify(data))
  }

  /** What is asked for in one turn of the event loop is one commit. */
  #committed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#commit())
    })
  }

  #commit(): void {
    const [now, waiting] = [Date.now(), this.#waiting]
    this.#waiting = []
    this.#statement('begin immediate').run()
    for (const kind of KINDS) if (this.#asked[kind] > 0) this.#ask(kind, now)
    const mark = this.#statement(`insert into writers (id, batch, used_at) values ('by hand', ?, ?)
      on conflict (id) do update set batch = excluded.batch, used_at = excluded.used_at`)
    mark.run((this.#batch += 1), now)
    this.#statement('commit').run()
    for (const resolve of waiting) resolve()
  }

  #ask(kind: Kind, now: number): void {
    const [values, rows, width] = [this.#given[kind], this.#asked[kind], COLUMNS[kind].length]
    this.#given[kind] = []
    this.#asked[kind] = 0
    for (let from = 0; from < rows;) {
      const count = 1 << Math.min(MOST_ROWS_LOG2, 31 - Math.clz32(rows - from))
      const statement = this.#joint(kind, count)
      const some = [...values.slice(from * width, (from + count) * width), now]
      if (kind === 'calls') for (const { id, seq } of statement.all(...some)) this.#seqs.set(String(id), Number(seq))
      else if (statement.run(...some).changes !== count) throw new Error(`${kind}: a guard did not hold`)
      from += count
    }
  }

  #joint(kind: Kind, rows: number): StatementSync {
    const known = this.#prepared.get(`${kind} ${rows}`)
    if (known !== undefined) return known
    const columns = COLUMNS[kind]
    const row = `(${columns.map(() => '?').join(', ')})`
    const given = `given (${columns.join(', ')}) as (values ${Array.from({ length: rows }, () => row).join(', ')})`
    const text = `with ${given} ${STATEMENTS[kind](`?${columns.length * rows + 1}`)}`
    const statement = this.#database.prepare(text)
    this.#prepared.set(`${kind} ${rows}`, statement)
    return statement
  }

  #statement(text: string): StatementSync {
    let statement = this.#prepared.get(text)
    if (statement === undefined) this.#prepared.set(text, (statement = this.#database.prepare(text)))
    return statement
  }
}
