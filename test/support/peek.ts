import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

import pg from 'pg'

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
  const { searchParams } = new URL(url)
  const client = new pg.Client(url.replace(/\?.*/, ''))
  await client.connect()
  try {
    const schema = searchParams.get('schema') ?? 'public'
    return stateIn((await client.query(`select state from ${schema}.runs where id = $1`, [run])).rows)
  } finally {
    await client.end()
  }
}

const stateIn = ([row]: readonly unknown[]) => (row as { readonly state: string } | undefined)?.state
