import { describe, expect, test } from 'vitest'

import { eventsAfter } from '../../src/events/event.ts'
import type { Event } from '../../src/events/event.ts'
import { usedSlots } from '../../src/runs/capacity.ts'
import { isTerminal, listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { integer, nullable, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { all, single } from '../../src/store/transition.ts'
import { messagesOf } from '../../src/threads/message.ts'
import type { Message } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { hurriedClock } from '../support/clocks.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { chance, printedChance } from '../support/seed.ts'
import type { Chance } from '../support/seed.ts'
import { aThread } from '../support/world.ts'
import { CONTENDERS, aPrize } from './contenders.ts'
import type { Contender, Prize, Told } from './contenders.ts'

/** On PostgreSQL each costs a dozen round trips; the deep run has as many there. */
const RACES = process.env.HOLDFAST_DEEP === undefined ? { sqlite: 250, postgres: 60 } : { sqlite: 500, postgres: 500 }
const { seed } = printedChance('races for the end of a run')

const pairs = CONTENDERS.flatMap((left, index) =>
  CONTENDERS.slice(index).map((right) => ({ left, right, name: `${left.name} against ${right.name}` })),
)

/** A few turns of the event loop, or of its microtasks only, or none at all. */
async function wander(luck: Chance): Promise<void> {
  for (let turn = luck.below(6); turn > 0; turn--) {
    if (luck.below(2) === 0) await Promise.resolve()
    else await new Promise((resolve) => setImmediate(resolve))
  }
}

interface Race {
  readonly prize: Prize
  readonly told: readonly [Told, Told]
}

/** Every fourth race goes to the left first, every fourth to the right; the others are open. */
async function race(index: number, stores: readonly Store[], pair: readonly Contender[], prize: Prize): Promise<Race> {
  const luck = chance(seed + index)
  const start = (side: number) => pair[side]!.contend(stores[(side + index) % 2]!, prize, () => wander(luck))
  if (index % 4 === 0) {
    const left = await start(0)
    return { prize, told: [left, await start(1)] }
  }
  if (index % 4 === 1) {
    const right = await start(1)
    return { prize, told: [await start(0), right] }
  }
  return { prize, told: await Promise.all([start(0), start(1)]) }
}

/** Who won, by what they were told: the one whose finish wrote the end, or the cancel that the end was bent to. */
function winnerOf({ told }: Race): number {
  const finished = told.flatMap(({ finish }, side) => (finish?.kind === 'finished' ? [side] : []))
  const requested = told.flatMap(({ cancel }, side) => (cancel === 'requested' ? [side] : []))
  expect(finished.length).toBeLessThanOrEqual(1)
  if (requested.length === 0) expect(finished).toHaveLength(1)
  return requested[0] ?? finished[0]!
}

const breakerRow = row({ agent: text(), failures: integer, openUntil: nullable(integer) })
const breakers = single(() => all(breakerRow, sql`select agent, failures, open_until from breakers`))

const attemptRow = row({ runId: text(), outcome: nullable(text()) })
const attempts = single(() => all(attemptRow, sql`select run_id, outcome from attempts order by run_id, number`))
const lateRow = row({ runId: text() })
const lateResults = single(() => all(lateRow, sql`select run_id from late_results`))

/** What the races left, read at once: five questions for each of them would take longer than the races. */
interface Traces {
  readonly runs: ReadonlyMap<string, Run>
  readonly events: ReadonlyMap<string | null, readonly Event[]>
  readonly attempts: ReadonlyMap<string, readonly { readonly outcome: string | null }[]>
  readonly late: ReadonlyMap<string, readonly unknown[]>
  readonly inbox: ReadonlyMap<string, readonly Message[]>
  readonly breakers: ReadonlyMap<string, { readonly failures: number; readonly openUntil: number | null }>
}

async function tracesOf(store: Store, prizes: readonly Prize[]): Promise<Traces> {
  const messages = await store.read(messagesOf, prizes[0]!.parentThreadId)
  const inbox = Map.groupBy(messages, (message) => message.key)
  const rows = await store.read(breakers)
  const runs = await store.read(listRuns, { limit: 2 * RACES.sqlite })
  return {
    inbox,
    breakers: new Map(rows.map((each) => [each.agent, each])),
    runs: new Map(runs.map((run) => [run.id, run])),
    events: Map.groupBy(await store.read(eventsAfter, 0, 100 * RACES.sqlite), ({ runId }) => runId ?? null),
    attempts: Map.groupBy(await store.read(attempts), ({ runId }) => runId),
    late: Map.groupBy(await store.read(lateResults), ({ runId }) => runId),
  }
}

/** All of the winner's side effects, each once, and none of the loser's. */
function checkEnd(traces: Traces, each: Race, winner: Contender): void {
  const { prize, told } = each
  const ended = traces.runs.get(prize.run.id)!
  const { state, code, by, breaker } = winner.won
  expect(ended).toMatchObject({ state, code, result: by === null ? null : { by } })
  checkAnswers(told, ended)

  const inbox = traces.inbox.get(`run:${ended.id}`) ?? []
  expect(inbox.map(({ body }) => [body['state'], body['code']])).toEqual([[state, code ?? undefined]])

  const events = traces.events.get(ended.id) ?? []
  const finished = events.filter(({ type }) => type === 'run.finished')
  expect(finished.map(({ data }) => data['state'])).toEqual([state])
  expect(events.filter(({ type }) => type === 'breaker.opened')).toHaveLength(breaker === 'opened' ? 1 : 0)

  const counted = traces.breakers.get(prize.agent)
  if (breaker === 'reset') expect(counted).toBeUndefined()
  if (breaker === 'untouched') expect(counted).toMatchObject({ failures: 2, openUntil: null })
  if (breaker === 'opened') expect(counted).toMatchObject({ failures: 3, openUntil: expect.any(Number) })
  checkAttempts(traces, each, ended)
}

/** Whoever was answered with an end was answered with the end; `running` only to one that was fenced meanwhile. */
function checkAnswers(told: readonly Told[], ended: Run): void {
  const takenOver = told.some(({ takeover }) => takeover !== undefined && takeover !== 'refused')
  for (const { finish, cancel } of told) {
    if (finish !== undefined && isTerminal(finish.run.state)) expect(finish.run).toEqual(ended)
    if (finish?.kind === 'finished') expect(finish.run.state).toBe(ended.state)
    if (finish !== undefined && !isTerminal(finish.run.state)) expect(takenOver).toBe(true)
    if (cancel === 'requested') expect(ended.state).toBe('cancelled')
  }
}

function checkAttempts(traces: Traces, { told }: Race, ended: Run): void {
  const takeovers = told.filter(({ takeover }) => takeover !== undefined && takeover !== 'refused').length
  const outcomes = traces.attempts.get(ended.id)?.map(({ outcome }) => outcome)
  expect(outcomes).toEqual([...Array.from({ length: takeovers }, () => 'superseded'), ended.state])
  // A result that came after cancel was asked for is kept beside the run, once for each attempt, and counts for nothing.
  const late = traces.late.get(ended.id)?.length ?? 0
  expect(late).toBeLessThanOrEqual(ended.state === 'cancelled' ? 1 : 0)
}

/** Every pair on one engine; the engines are files of their own, so that both cores are used. */
export function raceForTheEnd(name: TestEngine['name']): void {
  const engine = engines.find((each) => each.name === name)!
  describe.each(pairs)(`${name}, $name`, ({ left, right }) => {
    test(`in ${RACES[name]} races there is one winner, all of its side effects and none of the loser's [T1] [T2] [T3] [T4] [T5] [T6] [runs/one-terminal]`, () =>
      raceOften(engine, left, right))
  })
}

async function raceOften(engine: TestEngine, left: Contender, right: Contender): Promise<void> {
  const database = await engine.database()
  const clock = hurriedClock()
  const stores = [await database.open({ clock }), await database.open({ clock })]
  const parentThreadId = aThread()
  await stores[0]!.apply(openThread, parentThreadId, 'conductor', null)
  const indices = Array.from({ length: RACES[engine.name] }, (_, index) => index)
  const prizes = await Promise.all(indices.map((index) => aPrize(stores[index % 2]!, index, parentThreadId)))
  const races = await Promise.all(indices.map((index) => race(index, stores, [left, right], prizes[index]!)))

  const traces = await tracesOf(stores[0]!, prizes)
  const wins = [0, 0]
  for (const each of races) {
    const winner = winnerOf(each)
    wins[winner]! += 1
    checkEnd(traces, each, winner === 0 ? left : right)
  }
  expect(await stores[0]!.read(usedSlots)).toEqual([])
  await assertInvariants(stores[0]!)
  // Both orders were seen, so each of them did win and did lose; two cancels are one request.
  for (const count of wins) expect(count).toBeGreaterThanOrEqual(RACES[engine.name] / 4 - 1)
}
