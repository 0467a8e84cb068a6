import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { callOne } from '../../src/runs/call.ts'
import { findRun } from '../../src/runs/run.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { forgetThreads } from '../../src/threads/retention.ts'
import { findThread, openThread } from '../../src/threads/thread.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { submission } from '../support/world.ts'

/*
 * A thread with nothing in it is forgotten at the moment in which something is put on it. On PostgreSQL two transactions do that at once, and
 * no foreign key looks after the runs of a thread: to store thousands of calls, each would lock the same row.
 */
const GATE = 'gate' as ThreadId

const PUTTING: Record<string, (id: RunId, threadId: ThreadId) => Transition<unknown>> = {
  'a run': (id, threadId) => submitRun(submission({ id, threadId })),
  'a call with a thread of its own': (id, threadId) => callOne({ id, threadId, agent: 'adder', input: '1' }),
}

/** Who comes to the gate waits there, with what he has done so far, until it is opened. */
async function world() {
  const database = await engines.find(({ name }) => name === 'postgres')!.database()
  const [ours, theirs, side] = [await database.open(), await database.open(), new pg.Client(database.url)]
  await side.connect()
  onTestFinished(() => side.end())
  await side.query(`set search_path to ${new URL(database.url).searchParams.get('schema')}`)
  const threadId = newThreadId(random)
  for (const id of [GATE, threadId]) await ours.apply(openThread, id, 'adder', null)
  const waiting = async () => {
    const { rows } = await side.query(`select pid from pg_stat_activity where wait_event_type = 'Lock' and pid in
      (select pid from pg_locks where relation = 'threads'::regclass)`)
    return rows.length
  }
  await side.query('begin')
  await side.query('select 1 from threads where id = $1 for update', [GATE])
  return { ours, theirs, waiting, threadId, runId: newRunId(random), open: () => side.query('commit') }
}

function* toTheGate<T>(first: Transition<T>): Transition<T> {
  const done = yield* first
  yield* run(sql`update threads set agent = agent where id = ${GATE}`)
  return done
}

test.each(Object.entries(PUTTING))('%s keeps its thread from being forgotten', async (_, put) => {
  const { ours, theirs, waiting, threadId, runId, open } = await world()
  const stored = ours.apply(() => toTheGate(put(runId, threadId)))
  await until('it waits', async () => (await waiting()) === 1 || undefined)
  expect(await theirs.apply(forgetThreads, [threadId], 0)).toBe(0)
  await open()
  await stored
  expect((await ours.read(findRun, runId))?.threadId).toBe(threadId)
  expect(await ours.read(findThread, threadId)).toBeDefined()
})

test.each(Object.entries(PUTTING))(
  '%s is on a thread, or not stored, where that is being forgotten',
  async (_, put) => {
    const { ours, theirs, waiting, threadId, runId, open } = await world()
    const forgotten = theirs.apply(() => toTheGate(forgetThreads([threadId], 0)))
    await until('it waits', async () => (await waiting()) === 1 || undefined)
    const stored = ours
      .apply(() => put(runId, threadId))
      .then(
        () => true,
        () => false,
      )
    await until('the other waits too', async () => (await waiting()) === 2 || undefined)
    await open()
    expect(await forgotten).toBe(1)
    const isStored = await stored
    expect((await ours.read(findRun, runId)) !== undefined).toBe(isStored)
    expect((await ours.read(findThread, threadId)) !== undefined).toBe(isStored)
  },
)

const ORDERS: Record<string, (put: () => Promise<unknown>, forget: () => Promise<unknown>) => Promise<unknown>[]> = {
  first: (put, forget) => [put(), forget()],
  last: (put, forget) => [forget(), put()],
}
const TOGETHER = engines.flatMap((engine) =>
  Object.keys(PUTTING).flatMap((what) => Object.keys(ORDERS).map((order) => ({ engine, what, order }))),
)

test.each(TOGETHER)(
  '$what is on a thread, or not stored, where one commit forgets that too; $order, on $engine.name',
  async ({ engine, what, order }) => {
    const store = await (await engine.database()).open()
    const [threadId, runId] = [newThreadId(random), newRunId(random)]
    await store.apply(openThread, threadId, 'adder', null)
    const put = () => store.apply(() => PUTTING[what]!(runId, threadId))
    await Promise.allSettled(ORDERS[order]!(put, () => store.apply(forgetThreads, [threadId], 0)))
    const [stored, thread] = [await store.read(findRun, runId), await store.read(findThread, threadId)]
    expect(stored === undefined || thread !== undefined).toBe(true)
  },
)
