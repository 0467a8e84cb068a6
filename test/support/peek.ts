import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

import { query } from './engines.ts'

/**
 * The state of a run as the database has it. For waiting: asking by a command again and again would take the time of the
 * processes that are waited for.
 */
export async function peekState(store: string, run: string): Promise<string | undefined> {
  return store.startsWith('sqlite:') ? peekSqlite(store.slice('sqlite:'.length), run) : peekPostgres(store, run)
}

function peekSqlite(path: string, run: string): string | undefined {
  if (!existsSync(path)) return undefined
  try {
    const database = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
    try {
      return stateIn([database.prepare('select state from runs where id = ?').get(run)])
    } finally {
      database.close()
    }
  } catch {
    // Not yet made, or just being recovered: the next look will tell.
    return undefined
  }
}

async function peekPostgres(url: string, run: string): Promise<string | undefined> {
  const schema = new URL(url).searchParams.get('schema') ?? 'public'
  return stateIn(await query(url, `select state from ${schema}.runs where id = '${run}'`))
}

const stateIn = ([row]: readonly unknown[]) => (row as { readonly state: string } | undefined)?.state
