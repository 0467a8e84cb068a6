import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'

/** PostgreSQL's five characters, or undefined for an error of the connection or of our own. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') ? code : undefined
}

/** The transaction lost against another one, and may win when it is started again: so many times. */
const RESTARTS: Readonly<Record<string, number>> = {
  '40001': LIMITS.restarts, // serialization failure
  '40P01': LIMITS.restarts, // deadlock
  '55P03': LIMITS.restarts, // a row lock was not to be had in time
  // Two created the same key at once. Started anew, the second one finds the first's row; if not, it is a defect.
  '23505': 3,
  // What it found was forgotten before it could refer to it (src/runs/retention.ts). Started anew, it does not find it.
  '23503': 3,
  // Where nothing was taken to be likely, it is the number of the batch that is not so (`ENDING` in batch.ts).
  '22012': 3,
  // A newer version has given the table a column: what this connection had prepared is over, and so it may be with each of them.
  '0A000': LIMITS.poolConnections + 1,
}

/** A check in a statement divides by zero when what was likely is not so (statement.ts). */
export const isUnlikely = (error: unknown): boolean => sqlState(error) === '22012'

/** Of what is likely nobody asks before whether it is there already. */
export const isThere = (error: unknown): boolean => sqlState(error) === '23505'

/** The connection is let go, and what was asked is asked again of another. */
export const isPreparedForAnother = (error: unknown): boolean => sqlState(error) === '0A000'

export const restartsFor = (error: unknown): number => RESTARTS[sqlState(error) ?? ''] ?? 0

/** The server is going down or coming up, or has no place for one more. */
const SHUTDOWN = new Set(['57P01', '57P02', '57P03', '57P05', '53300', '25P03'])

/** What a server or a pooler says with its last breath, and may say of a commit that is done. */
const LAST_WORDS = ['08', '25P', '40003', '53', '57', '58', 'XX']

/** The server itself said no, and lives: what was asked was not done. Anything else says nothing about that. */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !LAST_WORDS.some((word) => state.startsWith(word))
}

/** Nobody answered, or not to the end: what was asked may or may not have been done. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof HoldfastError) return error.code === 'store/unreachable'
  const state = sqlState(error)
  if (state !== undefined) return state.startsWith('08') || SHUTDOWN.has(state)
  return isNetworkError(error)
}

function isNetworkError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: string }).code
  if (code !== undefined && /^E[A-Z0-9_]+$/.test(code)) return true
  return /terminat|timeout|not queryable|connection|closed/i.test(error.message)
}

/** The two sides did not agree on how to encrypt, or one does not know the other's certificate. */
function isTlsRefusal(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null)?.code)
  if (/CERT|^ERR_(SSL|TLS)|^UNABLE_TO_/.test(code)) return true
  return error instanceof Error && /does not support SSL/i.test(error.message)
}

const SENTENCES: Readonly<Record<string, [code: string, message: string, remedy: string]>> = {
  '28P01': ['store/wrong-password', 'the database refused the password', 'check user and password in HOLDFAST_STORE'],
  '28000': [
    'store/not-allowed',
    'the database does not let this user in from here',
    "check the user in HOLDFAST_STORE and the server's pg_hba.conf",
  ],
  '3D000': [
    'store/no-database',
    'there is no such database',
    'create it (createdb NAME), or correct the name in HOLDFAST_STORE',
  ],
  '42501': [
    'store/missing-rights',
    'this user may not do that',
    'grant the user CREATE on the database, or create the schema for it (create schema holdfast authorization USER)',
  ],
  '53100': [
    'store/full',
    'the disk of the database server is full',
    'free some space there; nothing acknowledged was lost',
  ],
  '53300': [
    'store/busy',
    'the database has no connection left',
    'raise max_connections, or lower ?pool= in HOLDFAST_STORE',
  ],
  '57014': [
    'store/slow',
    'a statement took longer than it may',
    'raise ?statement_timeout= in HOLDFAST_STORE, or find out what the server is busy with',
  ],
  '25006': ['store/read-only', 'this server takes no writes', 'it is a replica: point HOLDFAST_STORE at the primary'],
}

/** What went wrong in words that say what to do; anything that is not the database's passes unchanged. */
export function explain(error: unknown): unknown {
  if (error instanceof HoldfastError) return error
  const state = sqlState(error)
  const message = error instanceof Error ? error.message : String(error)
  const known = state === undefined ? undefined : SENTENCES[state]
  if (known !== undefined)
    return new HoldfastError(known[0], `${known[1]} (${message})`, { remedy: known[2], cause: error })
  if (restartsFor(error) === LIMITS.restarts) {
    return new HoldfastError('store/busy', `the transaction kept losing against others (${message})`, {
      remedy: 'try again',
      retry: { afterMs: 1_000 },
      cause: error,
    })
  }
  if (state?.startsWith('23') === true) {
    return new HoldfastError('store/constraint', `a rule of the database was broken (${message})`, {
      remedy: 'please report this, it is a defect',
      cause: error,
    })
  }
  if (isTlsRefusal(error)) {
    return new HoldfastError('store/tls', `no encrypted connection came about (${message})`, {
      remedy:
        'name the certificate with ?sslrootcert=, or say what you want with ?sslmode=verify-full, no-verify or disable',
      cause: error,
    })
  }
  if (isConnectionLost(error)) {
    return new HoldfastError('store/unreachable', `the database does not answer (${message})`, {
      remedy: 'check that the server runs and that HOLDFAST_STORE names it',
      retry: { afterMs: 1_000 },
      cause: error,
    })
  }
  return state === undefined
    ? error
    : new HoldfastError('store/postgres', `${message} (${state})`, {
        remedy: '`holdfast doctor` checks the database',
        cause: error,
      })
}
