import { systemRandomness as random } from '../../src/base/ids.ts'
import { ENDPOINTS } from '../../src/api/endpoints.ts'
import { HANDLERS } from '../../src/control/handlers.ts'
import { Desk } from '../../src/control/desk.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { forgetHistory } from '../../src/workers/history/forget.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import { row, text } from '../../src/store/row.ts'
import { raw } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { first, single } from '../../src/store/transition.ts'
import { SCENARIOS } from '../crash/scenarios.ts'
import type { HurriedClock } from './clocks.ts'
import { someCalls } from './some-calls.ts'

interface Place {
  readonly store: Store
  readonly clock: HurriedClock
  readonly home: string
}

/** All that is done in a day, once: every transition that there is, what a daemon does by itself, and every page that is looked at. */
export async function aDayOfWork(place: Place): Promise<void> {
  for (const scenario of SCENARIOS) {
    // Some want to be alone in their database: what they asked until then counts.
    await scenario
      .prepare(place)
      .then((act) => act(place.store))
      .catch(() => {})
  }
  await someCalls(place.store, 20)
  await aDaemon(place)
  await everyPage(place)
  place.clock.step(1_000 * 86_400_000)
  await forgetHistory({ ...place, random, cut: { runsMs: 1, threadsMs: 1 }, share: 1, mayGoOn: async () => true })
}

async function aDaemon({ store, clock, home }: Place): Promise<void> {
  const worker = await registerThisProcess({
    store,
    clock,
    random,
    home,
    kind: 'daemon',
    leaseMs: 15_000,
    limits: { total: 10, eachAgent: 5 },
    concurrency: 1,
    graceMs: 1,
    warn: () => {},
    agents: new Map([['none', { name: 'none', body: () => 1 } as never]]),
    notifies: { channels: new Map(), window: () => undefined } as never,
  })
  await worker.start()
  await worker.tend()
  await worker.drain(1)
  await store.read(eventsAfter, 0, 100)
}

/** By what their paths and their questions want. */
async function everyPage({ store, clock }: Place): Promise<void> {
  const runtime = { store, clock, random, config: undefined, agents: [], backlog: 10, leaseMs: 15_000, home: '/' }
  const desk = new Desk({ runtime } as never, { by: 'ann', via: 'test', scopes: ['admin'] } as never, 'status')
  const asks = [
    {},
    { after: 1 },
    { state: ['queued', 'parked'] },
    { agent: 'clerk' },
    { thread: 'inbox' },
    { type: ['run.queued'], before: 9 },
  ]
  const named = await someNames(store)
  for (const [name, handler] of Object.entries(HANDLERS)) {
    if (ENDPOINTS[name as keyof typeof HANDLERS].method !== 'GET') continue
    for (const ask of asks) {
      await (handler as (desk: Desk, ask: unknown) => Promise<unknown>)(desk, {
        ...named,
        ...ask,
        ...(ask.thread === undefined ? {} : {}),
      }).catch(() => {})
      await (handler as (desk: Desk, ask: unknown) => Promise<unknown>)(desk, ask).catch(() => {})
    }
  }
}

/** What there is to look at. */
async function someNames(store: Store): Promise<Readonly<Record<string, string>>> {
  const tables = {
    run: 'runs',
    thread: 'threads',
    schedule: 'schedules',
    action: 'actions',
    approval: 'approvals',
    message: 'messages',
  }
  const names: Record<string, string> = {}
  for (const [name, table] of Object.entries(tables)) {
    const found = await store.read(single(() => first(row({ id: text() }), raw(`select max(id) as id from ${table}`))))
    names[name] = found?.id ?? ''
  }
  return names
}
