/**
 * SQL as readable, pasteable text with values beside it. A statement is written once; each engine renders its own
 * placeholders and supplies its own clock for `now`.
 */
export type SqlValue = string | number | null | Uint8Array | typeof now

/** The database's own time, as milliseconds. An engine puts it in at execution, so that durable facts share one clock. */
export const now: unique symbol = Symbol('now')

export interface Sql {
  /** One longer than `values`. For a template without nested fragments this is the template's own array, a cache key. */
  readonly strings: readonly string[]
  readonly values: readonly SqlValue[]
}

export function sql(strings: TemplateStringsArray, ...values: readonly (SqlValue | Sql)[]): Sql {
  return values.some(isSql) ? flatten(strings, values) : { strings, values: values as readonly SqlValue[] }
}

/** Text that is already SQL: for identifiers and lists from our own tables of states, never for input. */
export const raw = (text: string): Sql => ({ strings: [text], values: [] })

/** `'queued', 'running'`: states as literals, so that the planner can match a partial index. */
export const literals = (words: readonly string[]): Sql =>
  raw(words.map((word) => `'${word.replaceAll("'", "''")}'`).join(', '))

/** As `x in ${among(words)}`: a list of any length is one value, so that the statement stays the same. */
export const among = (words: readonly string[]): Sql => sql`(select value from json_each(${JSON.stringify(words)}))`

/** One after the other, whatever they have in common; there is at least one. */
export const unionAll = (parts: readonly Sql[]): Sql => parts.reduce((whole, part) => sql`${whole} union all ${part}`)

/** A condition as a value, so that no index is chosen for it: rows that are named one by one are looked up one by one. */
export const unindexed = (condition: Sql): Sql => sql`case when ${condition} then 1 else 0 end = 1`

/** For the claim of a queue's head: rows that another worker is about to take are passed over, where there are others. */
export const skipLocked: Sql = raw('/* skip locked */')

/** The row stays as it was read until the commit. In SQLite nobody else writes meanwhile. */
export const held: Sql = raw('/* held */')

/** Nobody changes the row before the commit; others may rely on it at the same time. In SQLite nobody else writes meanwhile. */
export const unchanged: Sql = raw('/* unchanged */')

/** The row is there until the commit, whatever becomes of it otherwise. In SQLite nobody else writes meanwhile. */
export const kept: Sql = raw('/* kept */')

/** The rows of a table as others of the same commit have left it, for a likely statement about what such a one stores. */
export const storedIn = (table: string): Sql => raw(`${table} /* stored */`)

/** Whether a statement changes anything; refused where only a look is allowed. */
export function writesSomething(text: string): boolean {
  return (
    !/^\s*(select|pragma|explain)\b/i.test(text) && /\b(insert|update|delete|replace|create|drop|alter)\b/i.test(text)
  )
}

function isSql(value: SqlValue | Sql): value is Sql {
  return typeof value === 'object' && value !== null && 'strings' in value
}

function flatten(strings: readonly string[], values: readonly (SqlValue | Sql)[]): Sql {
  const texts = [strings[0] ?? '']
  const flat: SqlValue[] = []
  values.forEach((value, index) => {
    const after = strings[index + 1] ?? ''
    if (isSql(value)) {
      texts[texts.length - 1] += value.strings[0] ?? ''
      value.values.forEach((inner, at) => {
        flat.push(inner)
        texts.push(value.strings[at + 1] ?? '')
      })
      texts[texts.length - 1] += after
    } else {
      flat.push(value)
      texts.push(after)
    }
  })
  return { strings: texts, values: flat }
}
