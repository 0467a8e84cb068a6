import { describe, expect, test } from 'vitest'

import { newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { eventPage, eventsAfter, record, runEventsAfter } from '../../src/events/event.ts'
import type { Event } from '../../src/events/event.ts'
import { callOne, openCalls, threadOfCalls } from '../../src/runs/call.ts'
import { findRun } from '../../src/runs/run.ts'
import { BEGINNING, forgetRuns, oldRuns, readRecorded } from '../../src/runs/retention.ts'
import { familyEvents } from '../../src/sessions/tree.ts'
import { integer, row } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { one, single } from '../../src/store/transition.ts'
import { engines } from '../support/engines.ts'
import { someCalls } from '../support/some-calls.ts'

/*
 * Who records what happened to a run names it by its id, or by its number where that is at hand; whoever reads is told the id.
 */

const thread = threadOfCalls('adder')

/** A run that waits, and another one; what is told of the first by its id, by its number, and by its id again. */
async function told(store: Store): Promise<RunId> {
  const [id, other] = [newRunId(random), newRunId(random)]
  await store.apply(openCalls, 'adder')
  for (const each of [id, other]) await store.apply(callOne, { id: each, agent: 'adder', input: '[]' })
  const { seq: runSeq } = (await store.read(findRun, id))!
  await store.apply(record, { type: 'step.recorded', runSeq, threadId: thread, data: { step: 'a' } })
  await store.apply(record, { type: 'run.parked', runId: id, threadId: thread })
  await store.apply(record, { type: 'step.recorded', runSeq, data: { step: 'b' } })
  return id
}

const typesOf = (events: readonly Event[]) => events.map(({ type }) => type)
const OF_RUN = ['run.queued', 'step.recorded', 'run.parked', 'step.recorded']

const countRow = row({ count: integer })
const eventsOfRuns = single(() =>
  one(countRow, sql`select count(*) as count from events where run_id is not null or run_seq is not null`),
)

describe.each(engines)('events of a run on $name', (engine) => {
  const open = async () => (await engine.database()).open()

  test('are read in their order, whichever way it was named, a few at a time too', async () => {
    const store = await open()
    const id = await told(store)
    const events = await store.read(runEventsAfter, id, 0, 10)
    expect(typesOf(events)).toEqual(OF_RUN)
    expect(events.every(({ runId }) => runId === id)).toBe(true)
    const [, second] = events
    expect(await store.read(runEventsAfter, id, 0, 2)).toEqual(events.slice(0, 2))
    expect(await store.read(runEventsAfter, id, second!.seq, 1)).toEqual(events.slice(2, 3))
    expect(await store.read(runEventsAfter, newRunId(random), 0, 10)).toEqual([])
  })

  test('are told with its id to whoever reads the log, a page of it, or what happened to its thread', async () => {
    const store = await open()
    const id = await told(store)
    const events = await store.read(runEventsAfter, id, 0, 10)
    const ofRun = (all: readonly Event[]) => all.filter(({ runId }) => runId === id)
    expect(ofRun(await store.read(eventsAfter, 0, 100))).toEqual(events)
    const page = await store.read(eventPage, { limit: 100, after: 0, types: ['step.recorded', 'run.parked'] }, 100)
    expect(page.events).toEqual(events.slice(1))
    expect(ofRun((await store.read(familyEvents, thread, true, 0, 100)).events)).toEqual(events.slice(0, 3))
  })

  test('are looked at, archived and forgotten with it, all of them', async () => {
    const store = await open()
    await someCalls(store, 3)
    const cut = { runsMs: -60_000 }
    const [old, ...others] = await store.read(oldRuns, cut, BEGINNING, 10)
    expect(others).toHaveLength(2)
    const events = await store.read(runEventsAfter, old!.id, 0, 10)
    expect(typesOf(events)).toEqual(['run.queued', 'run.started', 'step.recorded', 'run.finished'])
    expect(old).toMatchObject({ events: 4, lastEvent: events.at(-1)!.seq })
    const archived = (await store.read(readRecorded, [old!.id])).filter(({ table }) => table === 'events')
    expect(new Set(archived.map(({ record: { type } }) => type))).toEqual(new Set(typesOf(events)))
    expect(archived).toHaveLength(4)
    // Something is told of it meanwhile: it stays as it is until somebody has seen that.
    await store.apply(record, { type: 'run.late_result', runSeq: old!.seq })
    expect(await store.apply(forgetRuns, [old!], cut)).toEqual([])
    const seen = (await store.read(oldRuns, cut, BEGINNING, 10)).find(({ id }) => id === old!.id)!
    const before = await store.read(eventsOfRuns)
    expect(await store.apply(forgetRuns, [seen], cut)).toEqual([old!.id])
    expect((await store.read(eventsOfRuns)).count).toBe(before.count - 5)
  })
})
