import type { Dialect, Migration } from './migration.ts'

/** How often in a row a session was woken in vain is another thing than how often in all. */
export const missedWakes: Migration = {
  number: 16,
  name: 'missed-wakes',
  statements: (d: Dialect) => [`alter table sessions add column missed_wakes ${d.integer} not null default 0`],
}
