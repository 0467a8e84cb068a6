import type { Dialect, Migration } from './migration.ts'

/** A browser that signed in with a token ends with it. */
export const browsersOfTokens: Migration = {
  number: 15,
  name: 'browsers-of-tokens',
  statements: (d: Dialect) => [`alter table tokens add column parent_id ${d.key} references tokens (id)`],
}
