import { actionsOfRun, isSettled } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import { approvalOfAction } from '../../src/actions/approval.ts'
import type { Run } from '../../src/runs/run.ts'
import { stepsOf } from '../../src/runs/step.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import type { Occurrence } from '../../src/schedule/occurrence.ts'
import { findSchedule } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { LEAD } from './people.ts'
import type { Acknowledged } from './people.ts'
import type { World } from './world.ts'

const A_DAY_IN_MINUTES = 24 * 60

/** No fault is a reason for a run to fail: what it may end with besides success is what people said, and what the clock did. */
export async function wrongEnds(
  world: World,
  store: Store,
  runs: readonly Run[],
  told: Acknowledged,
): Promise<string[]> {
  const byId = new Map<string, Run>(runs.map((run) => [run.id, run]))
  const wrong: string[] = []
  for (const run of runs) {
    const { id, state, code, error } = run
    const actions = await store.read(actionsOfRun, id)
    if (state === 'succeeded' && run.agent === 'clerk' && !wants(actions, 'append', 'note'))
      wrong.push(`succeeded with its work not done: ${id}`)
    if (state === 'cancelled' && !wasToEnd(run, byId, told)) wrong.push(`cancelled, and nobody wanted that: ${id}`)
    if (state === 'failed' && !(await mayFail(world, store, run, told)))
      wrong.push(`failed: ${id} (${run.agent}) with ${code}: ${error}`)
    for (const action of actions) wrong.push(...(await wrongSettled(world, store, run, action, told)))
  }
  return [...wrong, ...(await wrongLead(store, runs, told))]
}

const wants = (actions: readonly Action[], ...tools: readonly string[]) =>
  tools.every((tool) => actions.some((action) => action.tool === tool))

/** Whoever is cancelled takes along what he started. */
function wasToEnd(run: Run, byId: ReadonlyMap<string, Run>, told: Acknowledged): boolean {
  const parent = run.parentRunId === null ? undefined : byId.get(run.parentRunId)
  return told.unwanted.has(run.id) || (parent !== undefined && wasToEnd(parent, byId, told))
}

/** A day has passed for whoever looks at the wall clock. */
const aDayPassed = ({ faults }: World) =>
  faults.some(({ kind, amount }) => kind === 'clock step' && amount >= A_DAY_IN_MINUTES)

async function mayFail(world: World, store: Store, { id, agent, code }: Run, told: Acknowledged): Promise<boolean> {
  if (code === 'timeout') return aDayPassed(world)
  if (code !== 'tool' || agent !== 'steps') return false
  const steps = await store.read(stepsOf, id)
  return steps.some(({ state, actionId }) => state === 'failed' && told.undone.has(actionId ?? ''))
}

/** What was not done has somebody who did not want it, or who looked and saw that it was not. */
async function wrongSettled(
  world: World,
  store: Store,
  run: Run,
  { id, tool, state }: Action,
  told: Acknowledged,
): Promise<string[]> {
  const say = `${id} (${tool}) of ${run.id} (${run.state}) is ${state}`
  if (state === 'denied' || state === 'skipped') {
    const approval = await store.read(approvalOfAction, id)
    return approval !== undefined && told.denied.has(approval.id) ? [] : [`nobody said no: ${say}`]
  }
  const saw = told.undone.has(id) || world.ledger.absent.has(id)
  if (state === 'failed' && run.state === 'succeeded' && !saw) return [`nobody saw that: ${say}`]
  if (state === 'expired' && !aDayPassed(world)) return [`too early: ${say}`]
  if (state === 'withdrawn' ? run.state !== 'succeeded' : isSettled(state) && state !== 'in_doubt') return []
  return [`left behind: ${say}`]
}

/** One that was asked for work has it done by others, notes each word, and sums up when all of them have succeeded. */
async function wrongLead(store: Store, runs: readonly Run[], told: Acknowledged): Promise<string[]> {
  const own = runs.filter(({ threadId }) => threadId === LEAD)
  if (own.some(({ state }) => state !== 'succeeded')) return []
  const actions = (await Promise.all(own.map(({ id }) => store.read(actionsOfRun, id)))).flat()
  const inputs = new Set(actions.map(({ tool, input }) => `${tool} ${(input as { entry?: string }).entry ?? ''}`))
  const children = runs.filter(({ parentRunId }) => own.some(({ id }) => id === parentRunId))
  const given = actions.filter(({ id, tool }) => tool === 'delegate' && !told.undone.has(id)).length
  const wrong: string[] = children.length === given ? [] : [`${given} were given work, and ${children.length} had it`]
  for (const text of told.messages.values()) {
    const tasks = /^Let (\d) do it/.exec(text)?.[1]
    const done = children.filter(({ state }) => state === 'succeeded').length
    if (done === Number(tasks) && !inputs.has('append summary')) wrong.push('all have done it, and nobody summed up')
    if (tasks !== undefined && actions.filter(({ tool }) => tool === 'delegate').length !== Number(tasks))
      wrong.push(`${tasks} were to do it, and others were given it`)
    const word = /^by the way (\d)/.exec(text)?.[1]
    if (word !== undefined && !inputs.has(`note heard ${word}`)) wrong.push(`word ${word} was not noted`)
  }
  return wrong
}

const MOST_OCCURRENCES = 1_000
const MISSED = 'missed: '
const OVERLAP = 'overlap: '

/** Each schedule that somebody was told of has come to its last firing, and each firing has come to what its run did. */
export async function wrongFirings(store: Store, runs: readonly Run[], told: Acknowledged): Promise<string[]> {
  const states = new Map<string, Run['state']>(runs.map(({ id, state }) => [id, state]))
  const wrong: string[] = []
  for (const [id, firings] of told.schedules) {
    const schedule = await store.read(findSchedule, id)
    const occurrences = await store.read(listOccurrences, { scheduleId: id, limit: MOST_OCCURRENCES })
    const fired = occurrences.filter(({ reason }) => reason?.startsWith(MISSED) !== true)
    if (schedule?.state !== 'ended' || schedule.firings !== firings || fired.length !== firings)
      wrong.push(
        `${id} was to fire ${firings} times: it is ${schedule?.state ?? 'gone'} after ${schedule?.firings} with ${fired.length} of them written down`,
      )
    if (fired.length > 0 && !fired.some(({ runId }) => runId !== null)) wrong.push(`${id} fired, and nothing began`)
    wrong.push(...fired.filter((one) => !isTrue(one, states)).map(inWords))
  }
  return wrong
}

function isTrue({ state, reason, runId }: Occurrence, states: ReadonlyMap<string, Run['state']>): boolean {
  const became = states.get(runId ?? '')
  if (state === 'succeeded') return became === 'succeeded'
  if (state === 'failed') return became === 'failed' || became === 'cancelled'
  return state === 'skipped' && reason?.startsWith(OVERLAP) === true
}

const inWords = ({ id, state, reason, runId }: Occurrence) =>
  `the firing ${id} is ${state} (${reason}), of the run ${runId}`
