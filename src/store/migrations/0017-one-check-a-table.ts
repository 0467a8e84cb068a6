import { POSTGRES } from './migration.ts'
import type { Dialect, Migration } from './migration.ts'

/** By the names that PostgreSQL gave them. */
const REPLACED: Readonly<Record<string, readonly string[]>> = {
  runs: ['state_check', 'check', 'check1', 'kind_check', 'parent_mode_check', 'workspace_check'],
  attempts: ['outcome_check', 'check'],
  steps: ['effect_check', 'state_check', 'check'],
}

const SAYS: Readonly<Record<string, string>> = {
  runs: `case when ended_at is null then state = any ('{queued,running,parked}')
      else state = any ('{succeeded,failed,cancelled}') and (cancel_requested_at is null or state = 'cancelled') end
    and kind = any ('{command,agent,observed}')
    and parent_mode = any ('{wait,background,detached}')
    and workspace = any ('{shadow,transaction}')`,
  attempts: `case when ended_at is null then outcome is null
      else outcome is not null and outcome = any ('{succeeded,failed,cancelled,parked,requeued,superseded}') end`,
  steps: `case when settled_at is null then state = 'started' else state = any ('{done,failed,in_doubt}') end
    and effect = any ('{read,write}')`,
}

/**
 * PostgreSQL reads the text of every check of a table anew at each statement that writes to it, and a call writes to these three twice:
 * they say the same in one check each, in few words. The rows that are there have passed the old ones, so nobody waits until all are
 * looked through.
 */
export const oneCheckATable: Migration = {
  number: 17,
  name: 'one-check-a-table',
  statements: (d: Dialect) =>
    d === POSTGRES
      ? Object.entries(REPLACED).map(([table, names]) => {
          const dropped = names.map((name) => `drop constraint ${table}_${name}`).join(', ')
          return `alter table ${table} ${dropped}, add constraint ${table}_says check (${SAYS[table]!}) not valid`
        })
      : [],
}
