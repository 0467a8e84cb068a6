import type { Place } from './place.ts'
import { SCHEMAS } from './place.ts'

/** What the engine starts a transition again for. */
const STATES = ['40001', '40P01', '55P03'] as const

/** Where a transaction of ours writes. */
const TABLES = ['runs', 'attempts', 'messages', 'events', 'entries', 'actions', 'steps', 'approvals', 'breakers']

const refusing = (text: string) =>
  `create or replace function faults.refuse() returns trigger language plpgsql as $$ begin ${text} return null; end $$;`

/** Triggers that do nothing yet. Before anybody is at work: to make one waits for everybody who writes to its table. */
export async function prepareConflicts(place: Place, database: string): Promise<void> {
  const triggers = SCHEMAS.flatMap((schema) =>
    TABLES.map(
      (table) =>
        `create trigger refused before insert or update on ${schema}.${table} for each statement execute function faults.refuse();`,
    ),
  )
  const counters = 'create sequence faults.statements; create sequence faults.refusals minvalue 0 start 0;'
  await place.query(`create schema faults; ${counters} ${refusing('')} ${triggers.join('\n')}`, database)
}

/**
 * From now on every nth statement that writes is refused by the server. Sequences count: what they gave is not taken back
 * with the transaction, so the one that is started again is not refused at the same place.
 */
export async function armConflicts(place: Place, database: string, every: number) {
  const query = (text: string) => place.query<{ count: string }>(text, database)
  const states = `array[${STATES.map((state) => `'${state}'`).join(', ')}]`
  await query(
    refusing(`if nextval('faults.statements') % ${every} = 0 then
      raise exception 'on purpose' using errcode = (${states})[1 + nextval('faults.refusals') % ${STATES.length}];
    end if;`),
  )
  const raised = async () => {
    const [row] = await query(`select case when is_called then last_value + 1 else 0 end as count from faults.refusals`)
    return Number(row!.count)
  }
  return {
    raised,
    /** No more of them; how many of each kind there were, with the deadlocks that were real. */
    async disarm(): Promise<Record<string, number>> {
      await query(refusing(''))
      const all = await raised()
      const real = Number(
        (await query(`select deadlocks as count from pg_stat_database where datname = '${database}'`))[0]?.count ?? 0,
      )
      const times = STATES.map((state, at) => [
        state,
        Math.floor((all + STATES.length - 1 - at) / STATES.length) + (state === '40P01' ? real : 0),
      ])
      return Object.fromEntries(times) as Record<string, number>
    },
  }
}
