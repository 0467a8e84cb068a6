import type { Migration } from './migration.ts'

/** Provider accounts that said "not before". A row is a limit that no success has disproved yet. */
export const quotas: Migration = {
  number: 3,
  name: 'quotas',
  statements: (d) => [
    `create table quotas (
      quota ${d.key} primary key,
      blocked_until ${d.integer} not null,
      next_slot ${d.integer} not null,
      reason text not null
    )${d.tableEnd}`,
  ],
}
