import type { PoolConfig } from 'pg'

import { parseDuration } from '../../base/duration.ts'
import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'

/** What a `postgres://` URL says, our own parameters taken out of it; the others (sslmode, …) are the driver's. */
export interface PostgresSettings {
  readonly pool: PoolConfig
  /** Our tables live in a schema of their own, beside whatever else the database holds. */
  readonly schema: string
  /** Behind a pooler in transaction mode: nothing may be kept in a session, and LISTEN does not work. */
  readonly pooled: boolean
  readonly statementTimeoutMs: number
}

const OURS = ['schema', 'pool', 'pgbouncer', 'statement_timeout', 'application_name'] as const

export function parsePostgresUrl(url: string): PostgresSettings {
  const parsed = parseUrl(url)
  const given = Object.fromEntries(OURS.map((name) => [name, parsed.searchParams.get(name)]))
  for (const name of OURS) parsed.searchParams.delete(name)
  const schema = given.schema ?? 'holdfast'
  if (!/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw wrong(`"${schema}" is not a schema name`, 'use lower case letters, digits and _, as in ?schema=holdfast')
  }
  const pooled = given.pgbouncer === 'true' || given.pgbouncer === '1'
  const statementTimeoutMs =
    given.statement_timeout == null ? LIMITS.statementMs : parseDuration(given.statement_timeout)
  const max = given.pool == null ? LIMITS.poolConnections : Number(given.pool)
  if (!Number.isSafeInteger(max) || max < 2) throw wrong('?pool wants a whole number of 2 or more', 'as in ?pool=10')
  const session = {
    search_path: schema,
    // Who waited for a row sees it as it is then, whatever the server's default is: guards and locks rely on that.
    default_transaction_isolation: 'read\\ committed',
    // Acknowledged means on disk, whatever the server's default is.
    synchronous_commit: 'on',
    lock_timeout: LIMITS.rowLockMs,
    // A worker that is paused in the middle of a transaction must not keep its locks.
    idle_in_transaction_session_timeout: LIMITS.idleTransactionMs,
    statement_timeout: statementTimeoutMs,
    // Every statement of ours has an index to go by, in the order that it wants. A plan that was made while a table was new
    // and small is kept, and would read all of it when it has grown; a claim would sort the whole queue.
    enable_seqscan: 'off',
    enable_bitmapscan: 'off',
    // And each row that another one names is looked up: until the server has counted a table that was just filled, it would
    // rather read all of it to join it with nothing.
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    // So there is nothing to choose: planned once for a connection, not at each use, which takes a third of the server's time.
    plan_cache_mode: 'force_generic_plan',
    jit: 'off',
  }
  return {
    schema,
    pooled,
    statementTimeoutMs,
    pool: {
      connectionString: parsed.href,
      max,
      application_name: given.application_name ?? 'holdfast',
      connectionTimeoutMillis: LIMITS.connectMs,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      pipeline: true,
      // The server enforces the limit; this one is for a server that cannot be heard any more.
      query_timeout: statementTimeoutMs + LIMITS.connectMs,
      ...(pooled
        ? {}
        : {
            options: Object.entries(session)
              .map(([name, value]) => `-c ${name}=${value}`)
              .join(' '),
          }),
    },
  }
}

/** What a session would hold, said anew in every transaction: for a pooler that gives each one another session. */
export const localSettings = ({ schema, statementTimeoutMs }: PostgresSettings): string[] => [
  `set local search_path to ${schema}`,
  `set local synchronous_commit to on`,
  `set local statement_timeout to ${statementTimeoutMs}`,
  `set local lock_timeout to ${LIMITS.rowLockMs}`,
  `set local idle_in_transaction_session_timeout to ${LIMITS.idleTransactionMs}`,
]

function parseUrl(url: string): URL {
  try {
    return new URL(url)
  } catch {
    throw wrong('this is not a PostgreSQL URL', 'write postgres://USER:PASSWORD@HOST:5432/DATABASE')
  }
}

function wrong(message: string, remedy: string): HoldfastError {
  return new HoldfastError('usage/store-url', message, { remedy })
}
