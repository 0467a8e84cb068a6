import { createHash } from 'node:crypto'

import { HoldfastError } from '../../base/errors.ts'
import { MIGRATIONS } from '../migrations/index.ts'
import { SQLITE } from '../migrations/migration.ts'
import type { Migration } from '../migrations/migration.ts'
import { integer, row, text } from '../row.ts'
import { sql } from '../sql.ts'
import { all, run } from '../transition.ts'
import type { Connection } from './connection.ts'

const appliedRow = row({ number: integer, name: text(), checksum: text() })
const appliedMigrations = all(appliedRow, sql`select number, name, checksum from schema_migrations order by number`)

// The engine's own tables. `writers` answers the one question that a failed commit leaves open (group-commit.ts).
const ENGINE_TABLES = `
  create table if not exists schema_migrations (
    number integer primary key, name text not null, checksum text not null, applied_at integer not null
  ) strict;
  create table if not exists writers (
    id text primary key, batch integer not null, opened_at integer not null
  ) strict;`

/** Whether there is nothing to do: then opening takes no write lock and no sync. */
function isCurrent(connection: Connection, migrations: readonly Migration[]): boolean {
  if (connection.ask(`select 1 from sqlite_schema where name = 'schema_migrations'`) === undefined) return false
  const applied = connection.look(appliedMigrations, connection.instant())
  refuseForeignHistory(applied, migrations)
  return applied.length === migrations.length
}

/** Brings the schema up to date. Runs under the write lock: of several processes that start together, one does it. */
export function migrate(connection: Connection, migrations: readonly Migration[] = MIGRATIONS): void {
  if (isCurrent(connection, migrations)) return
  connection.begin()
  try {
    connection.script(ENGINE_TABLES)
    const at = connection.instant()
    const applied = connection.execute(appliedMigrations, at)
    refuseForeignHistory(applied, migrations)
    const known = new Set(applied.map((migration) => migration.number))
    for (const migration of migrations) if (!known.has(migration.number)) applyMigration(connection, migration)
    connection.commit()
  } catch (error) {
    connection.rollback()
    throw error
  }
}

function applyMigration(connection: Connection, migration: Migration): void {
  for (const statement of migration.statements(SQLITE)) connection.script(statement)
  const { number, name } = migration
  const at = connection.instant()
  connection.execute(
    run(sql`insert into schema_migrations (number, name, checksum, applied_at)
      values (${number}, ${name}, ${checksum(migration)}, ${at})`),
    at,
  )
}

function refuseForeignHistory(
  applied: readonly { number: number; name: string; checksum: string }[],
  migrations: readonly Migration[],
): void {
  for (const { number, name, checksum: recorded } of applied) {
    const known = migrations.find((migration) => migration.number === number)
    if (known === undefined) {
      throw new HoldfastError(
        'store/newer-schema',
        `this database has migration ${number} (${name}), which this Holdfast does not know`,
        {
          remedy: 'upgrade Holdfast, or open a copy made before the upgrade',
        },
      )
    }
    if (checksum(known) !== recorded) {
      throw new HoldfastError(
        'store/changed-migration',
        `migration ${number} (${name}) differs from the one this database was made with`,
        {
          remedy: 'use the Holdfast that made it, or restore a backup',
        },
      )
    }
  }
}

function checksum(migration: Migration): string {
  return createHash('sha256').update(migration.statements(SQLITE).join(';\n')).digest('hex')
}
