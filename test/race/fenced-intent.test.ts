import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { newAttemptId, systemRandomness as random } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import { advanceRun, stepsOf } from '../../src/runs/step.ts'
import type { StepsRef } from '../../src/runs/step.ts'
import { sql } from '../../src/store/sql.ts'
import { run } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { LEASE_MS, addWorker, running } from '../support/world.ts'

/*
 * Two transactions at once: one that begins something and has found its claim in order, and one that takes the run from it, or cancels it.
 * PostgreSQL lets both commit where nothing is held: then whoever took the run has seen nothing of what was begun, and begins it too.
 */
async function world() {
  const database = await engines.find(({ name }) => name === 'postgres')!.database()
  const [ours, theirs] = [await database.open(), await database.open()]
  const { ref, run: held, attempt } = await running(ours)
  const side = new pg.Client(database.url)
  await side.connect()
  onTestFinished(() => side.end())
  await side.query(`set search_path to ${new URL(database.url).searchParams.get('schema')}`)
  const waiting = async () => {
    const { rows } = await side.query(`select pid from pg_stat_activity where wait_event_type = 'Lock' and pid in
      (select pid from pg_locks where relation = 'threads'::regclass or relation = 'runs'::regclass)`)
    return rows.length
  }
  const steps: StepsRef = { ...ref, runSeq: held.seq }
  const threadId = held.threadId
  const taker = { workerId: await addWorker(theirs), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
  return { ours, theirs, side, waiting, steps, threadId, taker, held: { ...ref, mark: attempt.mark } }
}

type World = Awaited<ReturnType<typeof world>>

const RIVALS: Record<string, (world: World) => Promise<unknown>> = {
  'who takes its run over': ({ theirs, held, taker }) => theirs.apply(takeOverRun, held, 'owner-dead', taker),
  'who cancels its run': ({ theirs, steps }) => theirs.apply(cancelRun, steps.runId, { by: 'a person' }),
}

/** Its second statement has to wait, until `side` commits: the first one has looked at the claim, and nothing is committed. */
async function beginSlowly({
  ours,
  side,
  steps,
  threadId,
  waiting,
}: World): Promise<{ readonly begun: Promise<unknown> }> {
  await side.query('begin')
  await side.query('select 1 from threads where id = $1 for update', [threadId])
  const begun = ours.apply(function* slowly(): Transition<unknown> {
    const advanced = yield* advanceRun(steps, [], 'plain')
    yield* run(sql`update threads set agent = agent where id = ${threadId}`)
    return advanced
  })
  await until('it waits', async () => (await waiting()) === 1 || undefined)
  return { begun }
}

test.each(Object.keys(RIVALS))('%s sees a step that had begun, or it does not begin [actions/once]', async (who) => {
  const scene = await world()
  const { theirs, side, waiting, steps } = scene
  const { begun } = await beginSlowly(scene)
  const seen = RIVALS[who]!(scene).then(() => theirs.read(stepsOf, steps.runId))
  let isThrough = false
  void seen.then(() => (isThrough = true))
  await until('the other one waits too, or is through', async () => isThrough || (await waiting()) === 2 || undefined)
  await side.query('commit')
  expect(await begun).toEqual({ kind: 'recorded' })
  expect((await seen).map(({ name }) => name)).toEqual(['plain'])
})

test('steps of a run that begin side by side do not wait for each other', async () => {
  const scene = await world()
  const { begun } = await beginSlowly(scene)
  expect(await scene.theirs.apply(advanceRun, scene.steps, [], 'beside')).toEqual({ kind: 'recorded' })
  await scene.side.query('commit')
  expect(await begun).toEqual({ kind: 'recorded' })
})

test('a claim that was another one for a moment of the same commit begins nothing that is not written down', async () => {
  const { ours, steps, held, taker } = await world()
  await ours.apply(advanceRun, steps, [], 'first')
  const done = { name: 'first', effect: 'write', tries: 1, state: 'done', result: '1', error: null, by: null } as const
  const [taken, advanced] = await Promise.all([
    // The lease is not over: the new fence is taken back in the same transaction.
    ours.apply(takeOverRun, held, 'lease-over', taker),
    ours.apply(advanceRun, steps, [done], 'next'),
    // Unlikely: so everybody in this commit is asked one statement after the other.
    ours.apply(advanceRun, steps, [{ ...done, name: 'nothing' }]),
  ])
  expect([taken, advanced]).toEqual([undefined, { kind: 'recorded' }])
  expect((await ours.read(stepsOf, steps.runId)).map(({ name }) => name)).toEqual(['first', 'next'])
})
