import { onTestFinished } from 'vitest'

import { openPostgresStore } from '../../src/store/postgres/store.ts'
import type { HoldingProbe, Store } from '../../src/store/store.ts'
import { engines, query } from './engines.ts'
import { until } from './holdfast.ts'

const postgres = engines.find(({ name }) => name === 'postgres')!

export interface TwoProcesses {
  readonly store: Store
  /** The other process: it stops in the middle of its first transition that comes to such a statement. */
  readonly slow: Store
  readonly stopped: Promise<void>
  readonly go: () => void
  /** Until this one has ended, or waits for what the slow one holds: there is nothing else that it could do meanwhile. */
  readonly endsOrWaits: (work: Promise<unknown>) => Promise<void>
}

/** Only on PostgreSQL can a process be in the middle of a transition while another is, too. */
export async function twoProcesses(before: RegExp): Promise<TwoProcesses> {
  const database = await postgres.database()
  const [stopped, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const probe: HoldingProbe = ({ at, when, text = '' }) => {
    if (at !== 'statement' || when !== 'before' || !before.test(text)) return
    stopped.resolve()
    return released.promise
  }
  const schema = new URL(database.ownUrl).searchParams.get('schema')!
  const waiting = `select 1 from pg_locks wanted where not wanted.granted and exists (
    select 1 from pg_locks held join pg_class c on c.oid = held.relation join pg_namespace n on n.oid = c.relnamespace
    where held.pid = wanted.pid and n.nspname = '${schema}')`
  const store = await database.open()
  const slow = await openPostgresStore({ url: database.ownUrl, probe })
  onTestFinished(() => slow.close())
  return {
    store,
    slow,
    stopped: stopped.promise,
    go: () => released.resolve(),
    async endsOrWaits(work) {
      let ended = false
      const end = () => (ended = true)
      work.then(end, end)
      await until(
        'it has ended or waits',
        async () => ended || (await query(database.ownUrl, waiting)).length > 0 || undefined,
      )
    },
  }
}
