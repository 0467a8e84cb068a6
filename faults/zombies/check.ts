import { actionsOfRun } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { stepsOf } from '../../src/runs/step.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import { listSchedules } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { countMessages, findMessage } from '../../src/threads/message.ts'
import { violations } from '../../test/support/invariants.ts'
import { linesOf } from './ledger.ts'
import type { Line } from './ledger.ts'
import type { Acknowledged } from './people.ts'

const MOST = 200

/** Whether there is still something to come. */
export async function isAtRest(store: Store): Promise<boolean> {
  const runs = await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 1 })
  if (runs.length > 0) return false
  const counts = await store.read(countMessages)
  if (counts.some(({ state, count }) => ['pending', 'leased'].includes(state) && count > 0)) return false
  return (await store.read(listSchedules, { states: ['active'], limit: 1 })).length === 0
}

export const allRuns = (store: Store): Promise<Run[]> => store.read(listRuns, { limit: MOST })

/** What a run may be told for its end that is no fault of ours. */
export interface Excuses {
  /** As if everything had taken longer than it may: runs time out, what nobody took is a dead letter, what was delivered is forgotten. */
  readonly late: boolean
  /** A worker got no processor for so long that it stopped its commands before its lease ended, as it has to. */
  readonly starved: boolean
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
    ...wrongRuns(runs, excuses),
  ]
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

async function lost(store: Store, runs: readonly Run[], promised: Acknowledged, { late }: Excuses): Promise<string[]> {
  const ids = new Set<string>(runs.map(({ id }) => id))
  const gone = promised.runs.filter((id) => !ids.has(id)).map((id) => `acknowledged, and gone: ${id}`)
  const messages = await Promise.all(
    promised.messages.map(async (id) => [id, await store.read(findMessage, id)] as const),
  )
  const untaken = messages
    .filter(
      ([, message]) => message?.state !== 'consumed' && !(late && (message === undefined || message.state === 'dead')),
    )
    .map(([id, message]) => `a message that was accepted is ${message?.state ?? 'gone'}: ${id}`)
  const occurrences = await store.read(listOccurrences, { limit: MOST })
  const firings = promised.schedules.flatMap((id) => {
    const settled = occurrences.filter(({ scheduleId, settledAt }) => scheduleId === id && settledAt !== null)
    return settled.length === 1 ? [] : [`a schedule that was to fire once has ${settled.length} ends: ${id}`]
  })
  return [...gone, ...untaken, ...firings]
}

function wrongRuns(runs: readonly Run[], { late, starved }: Excuses): string[] {
  return runs.flatMap(({ id, agent, state, code, error, parkedFor }) => {
    if (state === 'succeeded' || (late && code === 'timeout') || (starved && code === 'lost')) return []
    const how = state === 'failed' ? `failed (${code}: ${error})` : `${state} ${parkedFor ?? ''}`
    return [`a run of ${agent} is ${how}: ${id}`]
  })
}
