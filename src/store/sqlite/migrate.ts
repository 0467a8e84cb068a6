import { MIGRATIONS } from '../migrations/index.ts'
import { appliedMigrations, checksumOf, pendingMigrations } from '../migrations/history.ts'
import { SQLITE } from '../migrations/migration.ts'
import type { Migration } from '../migrations/migration.ts'
import { sql } from '../sql.ts'
import { run } from '../transition.ts'
import type { Connection } from './connection.ts'

// The engine's own tables. `writers` answers the one question that a failed commit leaves open (group-commit.ts).
const ENGINE_TABLES = `
  create table if not exists schema_migrations (
    number integer primary key, name text not null, checksum text not null, applied_at integer not null
  ) strict;
  create table if not exists writers (
    id text primary key, batch integer not null, used_at integer not null
  ) strict;`

/** Whether there is nothing to do: then opening takes no write lock and no sync. */
function isCurrent(connection: Connection, migrations: readonly Migration[]): boolean {
  if (connection.ask(`select 1 from sqlite_schema where name = 'schema_migrations'`) === undefined) return false
  const applied = connection.look(appliedMigrations, connection.instant())
  return pendingMigrations(applied, migrations, SQLITE).length === 0
}

/** Brings the schema up to date. Runs under the write lock: of several processes that start together, one does it. */
export function migrate(connection: Connection, migrations: readonly Migration[] = MIGRATIONS): void {
  if (isCurrent(connection, migrations)) return
  connection.begin()
  connection.openSchema()
  try {
    connection.script(ENGINE_TABLES)
    const applied = connection.execute(appliedMigrations, connection.instant())
    for (const migration of pendingMigrations(applied, migrations, SQLITE)) applyMigration(connection, migration)
    connection.commit()
  } catch (error) {
    connection.rollback()
    throw error
  } finally {
    connection.sealSchema()
  }
}

function applyMigration(connection: Connection, migration: Migration): void {
  for (const statement of migration.statements(SQLITE)) connection.script(statement)
  const { number, name } = migration
  const at = connection.instant()
  connection.execute(
    run(sql`insert into schema_migrations (number, name, checksum, applied_at)
      values (${number}, ${name}, ${checksumOf(migration, SQLITE)}, ${at})`),
    at,
  )
}
