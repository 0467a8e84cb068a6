/** A column as the database describes it. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly required: boolean
}

/** A row in every table that the first migration brings; a later one that cannot keep them breaks the test. */
export const ROWS = `
  insert into threads (id, agent, created_at) values ('t', 'a', 1);
  insert into workers (id, kind, home, host, identity, started_at) values ('w', 'daemon', 'h', 'a', '{}', 1);
  insert into runs (id, thread_id, agent, state, request, request_digest, created_at) values ('r', 't', 'a', 'running', '{}', 'd', 1);
  insert into attempts (id, run_id, number, fence, worker_id, mark, slots, claimed_at, lease_until)
    values ('x', 'r', 1, 1, 'w', 'm', '[]', 1, 2);
  insert into late_results (attempt_id, run_id, outcome, arrived_at) values ('x', 'r', '{}', 1);
  insert into capacity (scope, used) values ('total', 1);
  insert into breakers (agent, cause, failures) values ('a', 'auth', 1);
  insert into messages (id, thread_id, generation, kind, key, state, body, created_at)
    values ('m', 't', 1, 'completion', 'k', 'pending', '{}', 1);
  insert into events (at, type, data) values (1, 'run.queued', '{}');`

/** What is required together with others, in a check of its table. */
const ALSO: ReadonlySet<string> = new Set(['digest'])

/** What refers to a row that is there; everything else that is required gets something that fits its type. */
const KNOWN: Readonly<Record<string, string>> = {
  thread_id: 't',
  run_id: 'r',
  worker_id: 'w',
  attempt_id: 'x',
  message_id: 'm',
  consumed_by_run: 'r',
}

/**
 * A statement that puts one row into a table, from nothing but its description: of tables that are made after this was written, too.
 * `words`: the first word that a check of a column allows.
 */
export function fillingRow(table: string, columns: readonly Column[], words: ReadonlyMap<string, string>): string {
  const needed = columns.filter(({ name, required }) => required || ALSO.has(name))
  const values = needed.map(({ name, type }) => {
    const word = words.get(name) ?? KNOWN[name]
    if (word !== undefined) return `'${word}'`
    return /int/i.test(type) ? '1' : /real|double/i.test(type) ? '1.5' : `'{}'`
  })
  if (needed.length === 0) return `insert into ${table} default values`
  return `insert into ${table} (${needed.map(({ name }) => name).join(', ')}) values (${values.join(', ')})`
}

/** The first word of each `column … check (column in ('a', 'b'))`, or of `check (column = 'a' or column = 'b')`. */
export function firstWords(definition: string): Map<string, string> {
  const found = definition.matchAll(/\b(\w+)\s+(?:text|varchar)[^,]*?check \(\1 (?:in \(|= )'([^']*)'/g)
  return new Map(Array.from(found, (match) => [match[1]!, match[2]!]))
}
