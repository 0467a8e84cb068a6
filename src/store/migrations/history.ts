import { HoldfastError } from '../../base/errors.ts'
import { integer, row, text } from '../row.ts'
import type { Decoded } from '../row.ts'
import { sql } from '../sql.ts'
import { all } from '../transition.ts'
import type { Dialect, Migration } from './migration.ts'

const appliedRow = row({ number: integer, name: text(), checksum: text() })
export type AppliedMigration = Decoded<typeof appliedRow>

/** What was done to this database, in order. */
export const appliedMigrations = all(
  appliedRow,
  sql`select number, name, checksum from schema_migrations order by number`,
)

/** Those that are still to be done, after making sure that what was done is what we know. */
export function pendingMigrations(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
  dialect: Dialect,
): readonly Migration[] {
  for (const done of applied) refuseForeign(done, migrations, dialect)
  const known = new Set(applied.map(({ number }) => number))
  return migrations.filter(({ number }) => !known.has(number))
}

export function checksumOf(migration: Migration, dialect: Dialect): string {
  return process
    .getBuiltinModule('node:crypto')
    .createHash('sha256')
    .update(migration.statements(dialect).join(';\n'))
    .digest('hex')
}

function refuseForeign(done: AppliedMigration, migrations: readonly Migration[], dialect: Dialect): void {
  const known = migrations.find(({ number }) => number === done.number)
  const which = `migration ${done.number} (${done.name})`
  if (known === undefined) {
    throw new HoldfastError('store/newer-schema', `this database has ${which}, which this Holdfast does not know`, {
      remedy: 'upgrade Holdfast, or open a copy made before the upgrade',
    })
  }
  if (checksumOf(known, dialect) !== done.checksum) {
    throw new HoldfastError('store/changed-migration', `${which} differs from the one this database was made with`, {
      remedy: 'use the Holdfast that made it, or restore a backup',
    })
  }
}
