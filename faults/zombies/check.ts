import { actionsOfRun } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { attemptsOf } from '../../src/runs/attempt.ts'
import type { Attempt } from '../../src/runs/attempt.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { stepsOf } from '../../src/runs/step.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import { listSchedules } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { countMessages, findMessage } from '../../src/threads/message.ts'
import type { Message } from '../../src/threads/message.ts'
import { violations } from '../../test/support/invariants.ts'
import { linesOf } from './ledger.ts'
import type { Line } from './ledger.ts'
import type { Acknowledged } from './people.ts'

const MOST = 200
const MOST_EVENTS = 10_000

/** Whether there is still something to come. */
export async function isAtRest(store: Store): Promise<boolean> {
  const runs = await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 1 })
  if (runs.length > 0) return false
  const counts = await store.read(countMessages)
  if (counts.some(({ state, count }) => ['pending', 'leased'].includes(state) && count > 0)) return false
  return (await store.read(listSchedules, { states: ['active'], limit: 1 })).length === 0
}

export const allRuns = (store: Store): Promise<Run[]> => store.read(listRuns, { limit: MOST })

/** How often a run of one of these workers was taken over, by what the store has written down. */
export async function takeoversFrom(store: Store, workers: ReadonlySet<unknown>): Promise<number> {
  const events = await store.read(eventsAfter, 0, MOST_EVENTS)
  return events.filter(({ type, data }) => type === 'run.taken_over' && workers.has(data['from'])).length
}

/** A worker that could not renew its lease in time stopped its commands, as it has to. */
export interface SelfFence {
  readonly workerId: string
  /** By the clock of the server. */
  readonly at: number
}

/** What can be the matter besides a fault of ours. Each is believed only where the record of the run or the message agrees. */
export interface Excuses {
  /** As if everything had taken longer than it may: runs time out, what nobody took is a dead letter. Nothing is forgotten. */
  readonly yearsOff: boolean
  readonly stops: readonly SelfFence[]
  readonly leaseMs: number
}

/** Everything that is wrong with a world that has come to rest, or never did. */
export async function verdictOn(
  store: Store,
  ledger: string,
  promised: Acknowledged,
  excuses: Excuses,
): Promise<string[]> {
  const runs = await allRuns(store)
  const lines = linesOf(ledger)
  return [
    ...(await violations(store)).map((violation) => `invariant: ${violation}`),
    ...doubles(lines),
    ...(await wrongEffects(store, runs, lines)),
    ...(await lost(store, runs, promised, excuses)),
    ...(await wrongRuns(store, runs, excuses)),
  ]
}

/** What is written down of the threads of the runs that something is wrong with. */
export async function storyOf(store: Store, problems: readonly string[]): Promise<string[]> {
  const named = new Set(problems.flatMap((problem) => problem.match(/run_\w+/g) ?? []))
  const runs = await allRuns(store)
  const threads = new Set(runs.filter(({ id }) => named.has(id)).map(({ threadId }) => threadId))
  const about = new Set(runs.filter(({ threadId }) => threads.has(threadId)).map(({ id }) => id))
  const events = await store.read(eventsAfter, 0, MOST_EVENTS)
  return events
    .filter(({ runId, threadId }) => about.has(runId as never) || threads.has(threadId as never))
    .map(({ at, type, runId, data }) => `${at} ${runId ?? '-'} ${type} ${JSON.stringify(data)}`)
}

/** The same thing, done again in the same run. */
function doubles(lines: readonly Line[]): string[] {
  const seen = new Map<string, number>()
  for (const { run, entry } of lines) seen.set(`${run} ${entry}`, (seen.get(`${run} ${entry}`) ?? 0) + 1)
  return [...seen].filter(([, times]) => times > 1).map(([what, times]) => `done ${times} times: ${what}`)
}

/** What the ledger says against what we say. */
async function wrongEffects(store: Store, runs: readonly Run[], lines: readonly Line[]): Promise<string[]> {
  const known = new Set<string>()
  const wrong: string[] = []
  const compare = (key: string, what: string, state: string) => {
    known.add(key)
    const times = lines.filter((line) => line.key === key).length
    if (state === 'done' && times !== 1) wrong.push(`said to be done, and was ${times} times: ${what}`)
    if (['failed', 'denied', 'skipped', 'expired', 'withdrawn', 'started'].includes(state) && times > 0)
      wrong.push(`${state}, and was done: ${what}`)
  }
  for (const run of runs) {
    for (const { name, state } of await store.read(stepsOf, run.id))
      compare(`${run.id}/${name}`, `${run.id} ${name}`, state)
    for (const action of (await store.read(actionsOfRun, run.id)).filter(isEffect))
      compare(action.id, `${action.id} (${action.tool})`, action.state)
    if (run.request.kind === 'command') compare(run.id, run.id, run.state === 'succeeded' ? 'done' : 'in_doubt')
  }
  const strange = lines.filter(({ key }) => !known.has(key)).map(({ key, entry }) => `unknown effect: ${key} ${entry}`)
  return [...wrong, ...strange]
}

/** A step that was in doubt is an action too, and was looked at as a step. */
const isEffect = ({ tool, repeatOf, entrySeq }: Action) => tool !== 'delegate' && repeatOf === null && entrySeq >= 0

async function lost(
  store: Store,
  runs: readonly Run[],
  promised: Acknowledged,
  { yearsOff }: Excuses,
): Promise<string[]> {
  const ids = new Set<string>(runs.map(({ id }) => id))
  const gone = promised.runs.filter((id) => !ids.has(id)).map((id) => `acknowledged, and gone: ${id}`)
  const messages = await Promise.all(
    promised.messages.map(async (id) => [id, await store.read(findMessage, id)] as const),
  )
  const untaken = messages
    .filter(([, message]) => message?.state !== 'consumed' && !(yearsOff && isOutOfTime(message)))
    .map(([id, message]) => `a message that was accepted is ${message?.state ?? 'gone'}: ${id}`)
  const occurrences = await store.read(listOccurrences, { limit: MOST })
  const firings = promised.schedules.flatMap((id) => {
    const settled = occurrences.filter(({ scheduleId, settledAt }) => scheduleId === id && settledAt !== null)
    return settled.length === 1 ? [] : [`a schedule that was to fire once has ${settled.length} ends: ${id}`]
  })
  return [...gone, ...untaken, ...firings]
}

const DAY_MS = 86_400_000
const spread = (...instants: readonly (number | null)[]) => {
  const known = instants.filter((each) => each !== null)
  return Math.max(...known) - Math.min(...known)
}

/** It was settled when it was long over by what is written in it. */
const isOutOfTime = (message: Message | undefined) =>
  message?.state === 'dead' && spread(message.createdAt, message.settledAt) > DAY_MS

async function wrongRuns(store: Store, runs: readonly Run[], excuses: Excuses): Promise<string[]> {
  const wrong: string[] = []
  for (const run of runs.filter(({ state }) => state !== 'succeeded')) {
    const { id, agent, state, code, error, parkedFor } = run
    const attempts = await store.read(attemptsOf, id)
    if (excuses.yearsOff && tookDays(run, attempts)) continue
    if (wasStoppedByItsOwner(run, attempts, excuses)) continue
    const how = state === 'failed' ? `failed (${code}: ${error})` : `${state} ${parkedFor ?? ''}`
    wrong.push(`a run of ${agent} is ${how}: ${id}`)
  }
  return wrong
}

/** By what is recorded of it. */
const tookDays = ({ code, startedAt, endedAt }: Run, attempts: readonly Attempt[]): boolean =>
  code === 'timeout' && spread(startedAt, endedAt, ...attempts.map(({ claimedAt }) => claimedAt)) > DAY_MS

/**
 * A run may be lost for one reason alone: it is a command, and a worker stopped it because it could not renew its lease, while it had it.
 * One that took it over has a lease of time to lay its hand on the command; after that nobody else stops it.
 */
function wasStoppedByItsOwner(run: Run, attempts: readonly Attempt[], { stops, leaseMs }: Excuses): boolean {
  if (run.code !== 'lost' || run.request.kind !== 'command' || !run.error?.includes('its worker lost the claim'))
    return false
  return attempts.some(({ workerId, claimedAt }, index) => {
    const until = (attempts[index + 1]?.claimedAt ?? Infinity) + leaseMs
    return stops.some((stop) => stop.workerId === workerId && stop.at >= claimedAt && stop.at <= until)
  })
}
