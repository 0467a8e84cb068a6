import { describe, expect, test } from 'vitest'

import { newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { WorkerId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { eventPage, lastEventSeq } from '../../src/events/event.ts'
import { processIdentity } from '../../src/processes/identity.ts'
import { becomeKeeper, forgottenThrough, refuseForgotten } from '../../src/events/retention.ts'
import { callOne } from '../../src/runs/call.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { BEGINNING, forgetRuns, oldRuns } from '../../src/runs/retention.ts'
import { findRun } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { registerWorker, stopWorker } from '../../src/runs/worker.ts'
import type { OwnerIdentity } from '../../src/runs/worker.ts'
import type { Store } from '../../src/store/store.ts'
import { row, text as textOf } from '../../src/store/row.ts'
import { raw } from '../../src/store/sql.ts'
import { all, run, single } from '../../src/store/transition.ts'
import { Keeper } from '../../src/workers/history/keeper.ts'
import { SCENARIOS } from '../crash/scenarios.ts'
import { succeeded } from '../crash/scenario.ts'
import { hurriedClock } from '../support/clocks.ts'
import { someCalls } from '../support/some-calls.ts'
import { engines, temporaryFolder } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { DAY_MS, archived, countOf, difference, forget } from '../support/forgetting.ts'
import type { Row } from '../support/forgetting.ts'
import { assertInvariants, snapshot, violations } from '../support/invariants.ts'
import type { Snapshot } from '../support/invariants.ts'
import { settleEverything } from '../support/settle.ts'
import { running, submission, submitted } from '../support/world.ts'
import { submitRun } from '../../src/runs/submit.ts'

const CUT_MS = 30 * DAY_MS

/** What a run's rows are named by, table by table. */
const OF_RUN = ['approvals', 'late_results', 'attempts', 'actions', 'entries', 'workspaces', 'events']

/** What goes by rules of its own, or is nothing but a name. */
const NOT_ARCHIVED = ['threads', 'acts', 'messages', 'attachments', 'schedules', 'occurrences', 'turn_ends', 'workers']

const isDeep = process.env['HOLDFAST_DEEP'] !== undefined

/** The same for the same seed, so that a failure can be looked at again. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  let state = seed
  const next = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
  return items
    .map((item) => ({ item, at: next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/** Situations of the crash tests, one after the other in one database: half of what they began is left as it is. */
async function someHistory(engine: TestEngine, seed: number) {
  const clock = hurriedClock()
  const store = await (await engine.database()).open({ clock })
  for (let i = 0; i < 2; i++) await store.apply(finishRun, (await running(store)).ref, succeeded)
  let made = 0
  for (const scenario of shuffled(SCENARIOS, seed)) {
    if (made === (engine.name === 'sqlite' ? 25 : 12)) break
    try {
      const act = await scenario.prepare({ store, clock })
      if ((made + seed) % 2 === 0) await act(store)
      made += 1
    } catch {
      // It wants to be the first in its database, or its names are taken.
    }
    clock.step(DAY_MS)
  }
  return { store, clock }
}

const rowsOf = (content: Snapshot, table: string) => (content[table] ?? []) as Row[]

/** Whatever is not over in `content`, by table and key. Each of these is needed as it is. */
function living(content: Snapshot): string[] {
  const over = new Set(rowsOf(content, 'runs').flatMap(({ id, ended_at }) => (ended_at === null ? [] : [id])))
  const runs = rowsOf(content, 'runs').filter(({ id }) => !over.has(id))
  const open = ['proposed', 'waiting', 'approved', 'started', 'in_doubt']
  const marked = new Set(rowsOf(content, 'once_marks').map(({ action_id }) => action_id))
  const needed = {
    runs,
    actions: rowsOf(content, 'actions').filter(({ id, state }) => open.includes(String(state)) || marked.has(id)),
    steps: rowsOf(content, 'steps').filter(({ state }) => state === 'started' || state === 'in_doubt'),
    approvals: rowsOf(content, 'approvals').filter(({ state }) => state === 'pending'),
    attempts: rowsOf(content, 'attempts').filter(({ ended_at }) => ended_at === null),
    workspaces: rowsOf(content, 'workspaces').filter(({ state }) =>
      ['ready', 'quarantined', 'decided'].includes(String(state)),
    ),
    messages: rowsOf(content, 'messages').filter(({ state }) => ['pending', 'leased', 'dead'].includes(String(state))),
    schedules: rowsOf(content, 'schedules').filter(({ ended_at }) => ended_at === null),
    occurrences: rowsOf(content, 'occurrences').filter(({ settled_at }) => settled_at === null),
    sessions: rowsOf(content, 'sessions'),
    events: rowsOf(content, 'events').filter(({ run_id }) => runs.some(({ id }) => id === run_id)),
    entries: shownEntries(content),
  }
  return Object.entries(needed).flatMap(([table, rows]) => rows.map((each) => `${table} ${JSON.stringify(each)}`))
}

function shownEntries(content: Snapshot): Row[] {
  const threads = rowsOf(content, 'threads').filter(
    ({ state, agent }) => state !== 'removed' && agent !== 'holdfast:webhook',
  )
  return threads.flatMap(({ id, generation }) => {
    const own = rowsOf(content, 'entries').filter(
      (entry) => entry['thread_id'] === id && entry['generation'] === generation,
    )
    const summaries = own.filter(({ kind }) => kind === 'summary').map(({ seq }) => Number(seq))
    return own.filter(({ seq }) => Number(seq) >= Math.max(0, ...summaries))
  })
}

const changed = (store: Store, text: string) => store.apply(single(() => run(raw(text))))

const anAction = (id: string, runId: string, more: Readonly<Record<string, string>> = {}) => {
  const fields = {
    id,
    run_id: runId,
    thread_id: 't',
    call_id: id,
    tool: 'x',
    effect: 'write',
    repeats: 'once',
    input: '{}',
    signature: id,
    state: 'done',
    mark: id,
    ...more,
  }
  return `insert into actions (${Object.keys(fields).join(', ')}, entry_seq, ordinal, created_at, started_at)
    values (${Object.values(fields)
      .map((value) => `'${value}'`)
      .join(', ')}, 0, ${id.length + (more['repeat_of'] === undefined ? 0 : 9)}, 0, 0)`
}

/** Each is one thing that needs a run that has ended long ago: how it comes about, and what takes it away. */
const NEEDS: Readonly<Record<string, (run: Run, other: Run) => readonly [holds: readonly string[], ends: string]>> = {
  'a write in doubt': ({ id }) => [[anAction('a', id, { state: 'in_doubt' })], `update actions set state = 'done'`],
  'a write that counts across runs': ({ id }) => [
    [anAction('a', id), `insert into once_marks (scope, signature, action_id, ends_at) values ('s', 's', 'a', 0)`],
    'delete from once_marks',
  ],
  'a call of another run that was answered from it': ({ id }, other) => [
    [anAction('a', id), anAction('b', other.id, { repeat_of: 'a', state: 'done' })],
    `delete from actions where id = 'b'`,
  ],
  'a step in doubt': ({ seq }) => [
    [
      `insert into steps (run_seq, name, effect, state, tries, started_at, settled_at) values (${seq}, 's', 'write', 'in_doubt', 1, 0, 0)`,
    ],
    `update steps set state = 'done'`,
  ],
  'files that nobody has decided about': ({ id }) => [
    [aWorkspace(id, `'ready'`, 'null')],
    `update workspaces set state = 'kept'`,
  ],
  'discarded work that can be brought back': ({ id }) => [
    [aWorkspace(id, `'discarded'`, '1')],
    'update workspaces set swept_at = 1',
  ],
  'a schedule that it made': ({ id, threadId }) => [
    [
      `insert into schedules (id, name, kind, state, rule, target, options, owner_thread, owner_run, made_by, created_at, updated_at)
      values ('s', 's', 'followup', 'active', '{}', '{}', '{}', '${threadId}', '${id}', 'x', 0, 0)`,
    ],
    'delete from schedules',
  ],
  'a session that is at it': ({ id, threadId }) => [
    [
      `insert into sessions (id, client, session_id, thread_id, generation, state, run_id, started_at, updated_at)
      values ('s', 'claude', 's', '${threadId}', 1, 'idle', '${id}', 0, 0)`,
    ],
    'update sessions set ended_at = 1',
  ],
  'a breaker that waits for it': ({ id, agent }) => [
    [`insert into breakers (agent, cause, failures, probe_run_id) values ('${agent}', 'auth', 3, '${id}')`],
    'delete from breakers',
  ],
  'a run that it started': ({ id }, other) => [
    [`update runs set parent_run_id = '${id}' where id = '${other.id}'`],
    'update runs set parent_run_id = null',
  ],
  'the run that started it': ({ id }, other) => [
    [`update runs set parent_run_id = '${other.id}' where id = '${id}'`],
    'update runs set parent_run_id = null',
  ],
  'a workspace of its thread, which counts what was done there': ({ threadId }, other) => [
    [`update runs set thread_id = '${threadId}', kind = 'agent', workspace = 'transaction' where id = '${other.id}'`],
    'update runs set workspace = null',
  ],
  'a turn that it has resumed': ({ id }, other) => [
    [anAction('deferred', other.id), `update runs set submit_key = 'resume:deferred' where id = '${id}'`],
    `update runs set submit_key = null`,
  ],
  'a conversation that goes on': ({ id, threadId }) => [
    [
      `insert into entries (thread_id, generation, run_id, kind, body, created_at) values ('${threadId}', 1, '${id}', 'user', '{}', 0)`,
    ],
    `insert into entries (thread_id, generation, run_id, kind, body, created_at)
      select thread_id, generation, (select max(id) from runs where ended_at is null), 'summary', '{}', 0 from entries`,
  ],
}

const aWorkspace = (id: string, state: string, keepUntil: string) => `insert into workspaces
  (run_id, thread_id, agent, mode, state, request, host, folder, repo, top, prefix, branch, base, opened_at, keep_until)
  values ('${id}', 't', 'a', 'transaction', ${state}, '{}', 'h', 'f', 'r', 't', '', 'main', 'b', 0, ${keepUntil})`

describe.each(engines)('what is forgotten on $name', (engine) => {
  const seeds = Array.from({ length: (engine.name === 'sqlite' ? 6 : 2) * (isDeep ? 20 : 1) }, (_, index) => index + 1)

  test.each(seeds)(
    'whatever happened, nothing that lives is touched, and the rest goes whole, into the archive first (%i)',
    async (seed) => {
      const { store, clock } = await someHistory(engine, seed)
      clock.step(CUT_MS)
      const [before, wrong] = [await snapshot(store), await violations(store)]
      const folder = temporaryFolder()
      await forget(store, CUT_MS, { archive: folder })
      // Situations that were made for a database of their own may have something wrong with them together; nothing is added.
      expect((await violations(store)).filter((each) => !wrong.includes(each))).toEqual([])
      const after = await snapshot(store)
      const still = new Set(living(after))
      expect(living(before).filter((each) => !still.has(each))).toEqual([])
      const tables = archived(folder)
      expect(tables.get('runs')?.length).toBeGreaterThanOrEqual(2)
      const gone = new Set(difference('runs', before, after).gone.map(({ id }) => id))
      for (const table of Object.keys(before).filter((name) => name !== 'retention')) {
        const change = difference(table, before, after)
        // Those of machines that nobody has heard of for a year are taken for gone.
        const isGone = ({ stopped_at }: Row) => table === 'workers' && stopped_at !== null
        expect(change.fresh.filter((each) => each['type'] !== 'history.forgotten' && !isGone(each))).toEqual([])
        if (OF_RUN.includes(table)) expect(rowsOf(after, table).filter(({ run_id }) => gone.has(run_id))).toEqual([])
        if (NOT_ARCHIVED.includes(table)) continue
        // `seq` and the like come as text from one engine, and the archive has names as the program knows them for events alone.
        const kept = (tables.get(table) ?? []).map((each) => String(each['id'] ?? each['seq'] ?? each['run_seq']))
        expect(
          change.gone
            .map((each) => String(each['id'] ?? each['seq'] ?? each['run_seq']))
            .filter((id) => !kept.includes(id)),
        ).toEqual([])
      }
    },
  )

  test.each(Object.keys(NEEDS).filter((_, index) => engine.name === 'sqlite' || isDeep || index % 4 === 0))(
    'a run stays as long as something needs it: %s',
    async (what) => {
      const clock = hurriedClock()
      const store = await (await engine.database()).open({ clock })
      const { run: old, ref } = await running(store)
      await store.apply(finishRun, ref, succeeded)
      const [holds, ends] = NEEDS[what]!(old, await submitted(store))
      for (const text of holds) await changed(store, text)
      clock.step(CUT_MS)
      expect(await forget(store, CUT_MS)).toMatchObject({ runs: 0, held: 1 })
      expect((await store.read(findRun, old.id))?.id).toBe(old.id)
      await changed(store, ends)
      expect(await forget(store, CUT_MS)).toMatchObject({ runs: 1, held: 0 })
    },
  )

  test('tables stay small while work goes on', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const alive = await submitted(store)
    const sizes: number[] = []
    for (let each = 0; each < 6; each++) {
      await Promise.all([someCalls(store, 40), forget(store, 2 * DAY_MS)])
      clock.step(DAY_MS)
      sizes.push(await countOf(store, 'runs'))
    }
    await forget(store, 2 * DAY_MS)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * 40 + 1)
    expect(await countOf(store, 'steps')).toBeLessThanOrEqual(2 * 40)
    expect(await countOf(store, 'events')).toBeLessThan(6 * 40 * 2)
    expect((await store.read(findRun, alive.id))?.state).toBe('queued')
    await assertInvariants(store)
  })

  test('a key is good for a week, however short the rest is kept', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const { run: first, ref } = await running(store, { key: 'order-1' })
    await store.apply(finishRun, ref, succeeded)
    clock.step(2 * DAY_MS)
    expect(await forget(store, DAY_MS)).toMatchObject({ runs: 0, held: 1 })
    const again = submission({ key: 'order-1', threadId: first.threadId })
    expect(await store.apply(submitRun, again)).toMatchObject({ kind: 'existing', run: { id: first.id } })
    clock.step(LIMITS.keysKeptMs)
    expect(await forget(store, DAY_MS)).toMatchObject({ runs: 1, held: 0 })
  })

  test('one that started others goes after them, and one that was started not before who waits for it', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const parent = await running(store)
    const child = await running(store, { parentRunId: parent.run.id, parentMode: 'background' } as never)
    await store.apply(finishRun, child.ref, succeeded)
    clock.step(CUT_MS)
    expect((await forget(store, CUT_MS)).runs).toBe(0)
    await store.apply(finishRun, parent.ref, succeeded)
    clock.step(CUT_MS)
    expect(await forget(store, CUT_MS)).toMatchObject({ runs: 2, held: 0 })
    expect(await countOf(store, 'threads')).toBe(0)
  })

  test('died between the archive and the removal: the same rows are archived again, and none is lost', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    for (let i = 0; i < 3; i++) await store.apply(finishRun, (await running(store)).ref, succeeded)
    clock.step(CUT_MS)
    const folder = temporaryFolder()
    const dying: Store = {
      engine: store.engine,
      read: (look, ...args) => store.read(look, ...args),
      apply: (change, ...args) =>
        (change as unknown) === forgetRuns ? Promise.reject(new Error('killed')) : store.apply(change, ...args),
      onChange: (listener) => store.onChange(listener),
      check: () => store.check(),
      warmUp: () => store.warmUp(),
      copyTo: (path) => store.copyTo(path),
      close: () => store.close(),
    }
    await expect(forget(dying, CUT_MS, { archive: folder })).rejects.toThrow('killed')
    expect([archived(folder).get('runs')?.length, await countOf(store, 'runs')]).toEqual([3, 3])
    await forget(store, CUT_MS, { archive: folder })
    expect([archived(folder).get('runs')?.length, await countOf(store, 'runs')]).toEqual([6, 0])
  })

  test('what was recorded after a run was put into the archive keeps it', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const { ref } = await running(store)
    await store.apply(finishRun, ref, succeeded)
    clock.step(CUT_MS)
    const [seen] = await store.read(oldRuns, { runsMs: CUT_MS }, BEGINNING, 10)
    expect(await store.apply(forgetRuns, [{ ...seen!, lastEvent: seen!.lastEvent - 1 }], { runsMs: CUT_MS })).toEqual(
      [],
    )
    expect(await store.apply(forgetRuns, [seen!], { runsMs: CUT_MS })).toEqual([ref.runId])
  })

  test('numbers of events go on, the last one stays, and who comes with an old one is told', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    for (let i = 0; i < 3; i++) await store.apply(finishRun, (await running(store)).ref, succeeded)
    const { seq } = await store.read(lastEventSeq)
    clock.step(CUT_MS)
    await forget(store, CUT_MS)
    expect((await store.read(lastEventSeq)).seq).toBeGreaterThan(seq)
    const through = await store.read(forgottenThrough)
    expect(through.eventsThrough).toBeGreaterThanOrEqual(seq - 1)
    expect(() => refuseForgotten(1, through)).toThrow(expect.objectContaining({ code: 'events/compacted' }) as Error)
    refuseForgotten(0, through)
    refuseForgotten(through.eventsThrough, through)
    // From the beginning is from what there is, at once.
    expect((await store.read(eventPage, { after: 0, limit: 10 }, 1)).events.length).toBe(1)
  })

  test('of two daemons one forgets, and another when that is gone', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    expect(await store.apply(becomeKeeper, 'a', LIMITS.keeperMs)).toBe(true)
    expect(await store.apply(becomeKeeper, 'b', LIMITS.keeperMs)).toBe(false)
    expect(await store.apply(becomeKeeper, 'a', LIMITS.keeperMs)).toBe(true)
    clock.step(LIMITS.keeperMs)
    expect(await store.apply(becomeKeeper, 'b', LIMITS.keeperMs)).toBe(true)
  })
})

const TRUSTED = { holds: async () => true }

test('a daemon forgets by itself, and writes nothing while there is nothing to forget', async () => {
  const clock = hurriedClock()
  const store = await (await engines[0]!.database()).open({ clock })
  const keeper = new Keeper({ store, clock, random, warn: () => {}, cut: { runsMs: CUT_MS } })
  await keeper.look(TRUSTED)
  expect(await countOf(store, 'retention')).toBe(0)
  const { ref } = await running(store)
  await store.apply(finishRun, ref, succeeded)
  clock.step(CUT_MS)
  const next = new Keeper({ store, clock, random, warn: () => {}, cut: { runsMs: CUT_MS } })
  await next.look(TRUSTED)
  expect(await countOf(store, 'runs')).toBe(0)
})

test('the thread of a function stays, because who calls it has looked for it long ago; what its models said does not', async () => {
  const clock = hurriedClock()
  const store = await (await engines[0]!.database()).open({ clock })
  await someCalls(store, 3)
  await changed(
    store,
    `insert into entries (thread_id, generation, run_id, kind, body, created_at)
      select thread_id, 1, id, 'assistant', '{}', 0 from runs`,
  )
  clock.step(CUT_MS)
  expect(await forget(store, CUT_MS)).toMatchObject({ runs: 3, threads: 0 })
  expect(await countOf(store, 'entries')).toBe(0)
  expect(await store.apply(callOne, { id: newRunId(random), agent: 'adder', input: '[]' })).toMatchObject({
    kind: 'called',
  })
})

test('a firing of a webhook goes with its thread, and so does a thread that was removed', async () => {
  const clock = hurriedClock()
  const store = await (await engines[0]!.database()).open({ clock })
  for (const [agent, state] of [
    ['holdfast:webhook', 'open'],
    ['clerk', 'removed'],
    ['clerk', 'open'],
  ]) {
    const { run: turn, ref } = await running(store)
    await store.apply(finishRun, ref, succeeded)
    await changed(store, `update threads set agent = '${agent}', state = '${state}' where id = '${turn.threadId}'`)
    await changed(
      store,
      `insert into entries (thread_id, generation, run_id, kind, body, created_at) values ('${turn.threadId}', 1, '${turn.id}', 'user', '{}', 0)`,
    )
    await changed(
      store,
      `insert into messages (id, thread_id, generation, kind, key, state, body, created_at, settled_at, consumed_by_run)
        values ('${turn.id}', '${turn.threadId}', 1, 'prompt', 'k', 'consumed', '{}', ${clock.now()}, ${clock.now()}, '${turn.id}')`,
    )
  }
  clock.step(LIMITS.messagesKeptMs + 1)
  expect(await forget(store, CUT_MS)).toMatchObject({ runs: 2, held: 1, threads: 2 })
  expect([await countOf(store, 'threads'), await countOf(store, 'messages')]).toEqual([1, 0])
})

test('a conversation stays as long as a person may go on with it, unless somebody says how long that is', async () => {
  const clock = hurriedClock()
  const store = await (await engines[0]!.database()).open({ clock })
  const world = { store, clock }
  const turn = SCENARIOS.find(({ change }) => change === 'recordTurn')!
  await (
    await turn.prepare(world)
  )(store)
  await settleEverything(store)
  clock.step(CUT_MS + LIMITS.keysKeptMs)
  expect((await forget(store, CUT_MS)).runs).toBe(0)
  expect(await countOf(store, 'entries')).toBeGreaterThan(0)
  expect((await forget(store, CUT_MS, { cut: { runsMs: CUT_MS, threadsMs: CUT_MS } })).runs).toBeGreaterThan(0)
  expect(await countOf(store, 'entries')).toBe(0)
})

describe.each(engines)('on $name', (engine) => {
  test('a worker that is gone is forgotten with the last run that it had a hand in, and one that may be there is not', async () => {
    const clock = hurriedClock()
    const store = await (await engine.database()).open({ clock })
    const here = processIdentity()!
    const [stopped, killed, alive] = ['wrk_stopped', 'wrk_killed', 'wrk_alive'] as WorkerId[]
    // Its number is somebody else's now.
    await store.apply(registerWorker, worker(killed!, { ...here, startTime: here.startTime - 1 }))
    await store.apply(registerWorker, worker(alive!, here))
    await store.apply(registerWorker, worker('wrk_elsewhere' as WorkerId, { ...here, host: 'another' }))
    await store.apply(registerWorker, worker(stopped!, here))
    await store.apply(stopWorker, stopped!)
    const { ref, attempt } = await running(store)
    await store.apply(stopWorker, attempt.workerId)
    clock.step(CUT_MS)
    // That it is gone is seen now, and that was long ago the next time.
    await forget(store, CUT_MS)
    expect(await workersOf(store)).toEqual(['wrk_alive', 'wrk_elsewhere', 'wrk_killed', attempt.workerId].toSorted())
    await store.apply(finishRun, ref, succeeded)
    clock.step(CUT_MS)
    await forget(store, CUT_MS)
    expect(await workersOf(store)).toEqual(['wrk_alive', 'wrk_elsewhere'])
    // Nobody can look at it; but no process is up for so long.
    for (const step of [LIMITS.workerUnseenMs, CUT_MS]) {
      clock.step(step)
      await forget(store, CUT_MS)
    }
    expect(await workersOf(store)).toEqual(['wrk_alive'])
    await assertInvariants(store)
  })
})

const worker = (id: WorkerId, identity: OwnerIdentity) => ({ id, kind: 'command' as const, home: '/home', identity })

const workersOf = async (store: Store) =>
  (await store.read(single(() => all(row({ id: textOf() }), raw('select id from workers order by id'))))).map(
    ({ id }) => id,
  )
