import { describe, expect, test } from 'vitest'

import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { sessionActive, sessionEnded, sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import type { Heard, Stop } from '../../src/sessions/events.ts'
import { sessionLost } from '../../src/sessions/lost.ts'
import { row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { all } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { engines } from '../support/engines.ts'
import { violations } from '../support/invariants.ts'
import { late } from '../support/late.ts'
import { printedChance } from '../support/seed.ts'

const ROUNDS = process.env['HOLDFAST_DEEP'] === '1' ? 1_000 : 20
const MOST_LATE = 10

const stuckRow = row({ id: text(), why: text() })

/** What no later event of the session would bring to its end. */
function* stuck(): Transition<string[]> {
  const messages = yield* all(
    stuckRow,
    sql`select m.id, 'is leased to a session that does not know of it' as why from messages m
      where m.state = 'leased' and m.leased_by like '%"session"%'
        and not exists (select 1 from sessions s where s.delivery_id = m.delivery_id)`,
  )
  const turns = yield* all(
    stuckRow,
    sql`select r.id, 'is a turn that no session will end' as why from runs r
      where r.kind = 'observed' and r.state = 'running' and not exists (select 1 from sessions s where s.run_id = r.id)`,
  )
  return [...messages, ...turns].map(({ id, why }) => `${id} ${why}`)
}

/** A session in its first turn, with a message in its inbox; its events have had the numbers 1 and 2. */
async function inTurn(store: Store, session: Heard): Promise<void> {
  await store.apply(sessionStarted, { ...session, ordinal: 1 }, 'startup')
  await store.apply(turnBegun, { ...session, ordinal: 2 }, 'p1')
  await store.apply(acceptMessage, {
    id: newMessageId(random),
    threadId: `claude-${session.sessionId}` as ThreadId,
    from: 'child' as ThreadId,
    kind: 'completion',
    key: 'k',
    body: { summary: 'x' },
  })
}

type Event = (store: Store, lateBy: number, ordinal: number) => Promise<unknown>

function eventsOf(session: Heard): readonly (readonly [name: string, event: Event])[] {
  const elsewhere = { ...session, process: { pid: 2 } }
  const stop = (ordinal: number, more: Partial<Stop> = {}): Stop => ({
    turn: 'p1',
    ordinal,
    isPaused: false,
    deliveryId: random.id(),
    lastMessage: 'x',
    ...more,
  })
  return [
    ['stop', (store, by, ordinal) => store.apply(late(by, turnStopped), { ...session, ordinal }, stop(ordinal))],
    [
      'stop, having gone on',
      (store, by, ordinal) =>
        store.apply(late(by, turnStopped), { ...session, ordinal }, stop(ordinal, { isActive: true })),
    ],
    ['active', (store, by, ordinal) => store.apply(late(by, sessionActive), { ...session, ordinal }, true)],
    ['begin', (store, by, ordinal) => store.apply(late(by, turnBegun), { ...session, ordinal }, 'p2')],
    ['resume', (store, by, ordinal) => store.apply(late(by, sessionStarted), { ...elsewhere, ordinal }, 'resume')],
    ['end', (store, by, ordinal) => store.apply(late(by, sessionEnded), { ...session, ordinal }, 'exit')],
    ['loss', (store, by) => store.apply(late(by, sessionLost), `claude:${session.sessionId}`, { pid: 1 })],
  ]
}

describe.each([
  { processes: 'one process', count: 1 },
  { processes: 'two processes', count: 2 },
])('heard by $processes', ({ count }) => {
  test(`${ROUNDS} times two or three events of a session come at once: no message and no turn is left to nobody [inbox/never-lost]`, async () => {
    const luck = printedChance('events of one session')
    const database = await engines.find(({ name }) => name === 'postgres')!.database()
    const stores = await Promise.all(Array.from({ length: count }, () => database.open()))
    const [store] = stores as [Store]
    for (let round = 0; round < ROUNDS; round += 1) {
      const session: Heard = { client: 'claude', sessionId: `s${round}`, process: { pid: 1 } }
      await inTurn(store, session)
      const events = eventsOf(session)
      const chosen = Array.from({ length: 2 + luck.below(2) }, (_, index) => {
        const [name, event] = events[luck.below(events.length)]!
        const [by, on] = [luck.below(MOST_LATE), stores[luck.below(count)]!]
        return { name: `${name}+${by}`, act: () => event(on, by, 3 + index) }
      })
      await Promise.all(chosen.map(({ act }) => act()))
      const what = `round ${round}: ${chosen.map(({ name }) => name).join(', ')}`
      expect(await store.read(stuck), what).toEqual([])
      if (round % 20 === 0) expect(await violations(store), what).toEqual([])
    }
    expect(await violations(store)).toEqual([])
  }, 300_000)
})
