import { actionsOfRun } from '../../src/actions/action.ts'
import type { Action } from '../../src/actions/action.ts'
import { approvalOfAction } from '../../src/actions/approval.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { stepsOf } from '../../src/runs/step.ts'
import { nullable, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { all, single } from '../../src/store/transition.ts'
import { countMessages, messagesOf } from '../../src/threads/message.ts'
import { violations } from '../../test/support/invariants.ts'
import { wrongOrder } from './audit.ts'
import { wrongEnds, wrongFirings } from './ends.ts'
import { CLERK, LEAD } from './people.ts'
import type { Acknowledged } from './people.ts'
import { READ, STEPS } from './tools.ts'
import type { World } from './world.ts'

export interface Expected {
  readonly acknowledged: Acknowledged
  /** Of the schedule. */
  readonly firings: number
  /** Who asked for something, and has no answer. */
  readonly unanswered: readonly string[]
}

/** Everything that is wrong with a world that has come to rest. */
export async function verdictOn(world: World, store: Store, expected: Expected): Promise<string[]> {
  const runs = await store.read(listRuns, { limit: 100 })
  const open = runs.filter(({ endedAt }) => endedAt === null)
  return [
    ...(await violations(store)).map((violation) => `invariant: ${violation}`),
    ...world.ledger.doubles().map((double) => `done twice: ${double}`),
    ...expected.unanswered.map((name) => `never answered: ${name}`),
    ...open.map(({ id, state, parkedFor }) => `never ended: ${id} is ${state} ${parkedFor ?? ''}`),
    ...(await wrongActions(world, store, runs, expected.acknowledged)),
    ...(await wrongSteps(world, store, runs)),
    ...(await world.witness.wrongSteps(store)),
    ...(await unknownRounds(world, store, runs)),
    ...(await wrongMessages(store, runs)),
    ...(await wrongOrder(store, runs)),
    ...(await lost(store, runs, expected.acknowledged)),
    ...(await wrongEnds(world, store, runs, expected.acknowledged)),
    ...(await wrongFirings(store, runs, expected.acknowledged)),
    ...wrongRuns(world, runs, expected),
  ]
}

const NOT_DONE = ['failed', 'denied', 'skipped', 'withdrawn', 'expired']

/** What the ledger says against what we say. */
async function wrongActions(
  world: World,
  store: Store,
  runs: readonly Run[],
  { denied }: Acknowledged,
): Promise<string[]> {
  const { ledger } = world
  const wrong: string[] = []
  const known = new Set<string>()
  for (const { id } of runs) {
    for (const action of await store.read(actionsOfRun, id)) {
      known.add(action.id)
      if (action.tool === 'delegate' || action.repeatOf !== null) continue
      if (action.tool === READ) {
        wrong.push(...wrongLook(world, action))
        continue
      }
      const times = ledger.timesOf(action.id)
      const say = `${action.id} (${action.tool}) is ${action.state} and was done ${times} times`
      if (action.state === 'done' && times !== 1) wrong.push(`lost or doubled: ${say}`)
      if (NOT_DONE.includes(action.state) && times > 0) wrong.push(`denied, and done: ${say}`)
      if (action.tool !== 'pay' || times === 0) continue
      const approval = await store.read(approvalOfAction, action.id)
      if (approval?.state !== 'consumed' || denied.has(approval.id))
        wrong.push(`done without a yes (${approval?.state}): ${say}`)
    }
  }
  for (const { actionId, entry } of ledger.effects)
    if (!known.has(actionId) && entry !== 'step') wrong.push(`unknown effect: ${actionId} ${entry}`)
  return wrong
}

/** What was found out is what the last one found who looked; one who was superseded has nothing to say. */
function wrongLook({ witness }: World, action: Action): string[] {
  const last = witness.whoTried(action)
  if (action.state !== 'done' || last === undefined || action.result === last) return []
  return [`${action.id} was looked at by ${last}, and says what ${String(action.result)} saw`]
}

/** The same for what functions do. */
async function wrongSteps({ ledger }: World, store: Store, runs: readonly Run[]): Promise<string[]> {
  const wrong: string[] = []
  for (const { id, state } of runs.filter(({ agent }) => agent === 'steps')) {
    const steps = await store.read(stepsOf, id)
    for (const { name, state: says } of steps) {
      const times = ledger.effects.filter((effect) => effect.runId === id && effect.tool === name).length
      if ((says === 'done' && times !== 1) || (says === 'failed' && times > 0))
        wrong.push(`step ${name} of ${id} is ${says} and was done ${times} times`)
    }
    if (state === 'succeeded' && steps.length !== STEPS.length)
      wrong.push(`${id} succeeded with ${steps.length} of ${STEPS.length} steps`)
    for (const { runId, tool } of ledger.effects)
      if (runId === id && !steps.some(({ name }) => name === tool)) wrong.push(`unknown effect: ${tool} of ${id}`)
  }
  return wrong
}

/** Each child's end was told to its parent once, and nothing lies about. */
async function wrongMessages(store: Store, runs: readonly Run[]): Promise<string[]> {
  const wrong: string[] = []
  const messages = await store.read(messagesOf, LEAD)
  for (const run of runs.filter(({ parentRunId }) => parentRunId !== null)) {
    const ends = messages.filter(
      ({ kind, fromThread }) => ['completion', 'error'].includes(kind) && fromThread === run.threadId,
    )
    if (ends.length !== 1) wrong.push(`the end of ${run.id} (${run.state}) was told ${ends.length} times`)
  }
  const counts = await store.read(countMessages)
  for (const { state, count } of counts) if (state !== 'consumed') wrong.push(`${count} messages are ${state}`)
  return wrong
}

const messageKeys = single(() => all(row({ key: nullable(text()) }), sql`select key from messages`))

/** What somebody was told is true still. */
async function lost(store: Store, runs: readonly Run[], told: Acknowledged): Promise<string[]> {
  const wrong: string[] = []
  const byId = new Map(runs.map((run) => [run.id, run]))
  const keys = (await store.read(messageKeys)).map(({ key }) => key)
  for (const key of told.messages.keys()) {
    const times = keys.filter((each) => each === key).length
    if (times !== 1) wrong.push(`the message ${key} was accepted, and is there ${times} times`)
  }
  for (const id of told.cancelled)
    if (byId.get(id)?.state !== 'cancelled') wrong.push(`${id} was cancelled, and is ${byId.get(id)?.state}`)
  for (const id of told.calls) if (!byId.has(id)) wrong.push(`the call ${id} was accepted, and is gone`)
  for (const id of told.approved) {
    const approval = await store.read(approvalOfAction, id as Parameters<typeof approvalOfAction.single>[0])
    if (approval === undefined || approval.decidedBy === null) wrong.push(`the yes to ${id} is gone`)
  }
  return wrong
}

const firedRuns = single(() => all(row({ runId: nullable(text()) }), sql`select run_id from occurrences`))

const isRound = ({ agent, parentRunId, threadId }: Run) =>
  agent === 'clerk' && parentRunId === null && !threadId.startsWith(CLERK)

/** One that wrote something is the run of its firing for good. */
async function unknownRounds({ ledger }: World, store: Store, runs: readonly Run[]): Promise<string[]> {
  const known = new Set((await store.read(firedRuns)).map(({ runId }) => runId))
  const wrote = new Set(ledger.effects.map(({ runId }) => runId))
  return runs
    .filter((run) => isRound(run) && wrote.has(run.id) && !known.has(run.id))
    .map(({ id }) => `no firing knows of ${id}`)
}

/** A firing whose run ended before it wrote anything may have another. */
function wrongRuns({ ledger }: World, runs: readonly Run[], { firings, acknowledged }: Expected): string[] {
  const wrote = new Set(ledger.effects.map(({ runId }) => runId))
  const rounds = runs.filter((run) => isRound(run) && wrote.has(run.id))
  const calls = runs.filter(({ agent }) => agent === 'steps')
  return [
    ...(rounds.length > firings ? [`${rounds.length} runs of ${firings} firings`] : []),
    ...(calls.length > acknowledged.calls.size ? [`${calls.length} runs of ${acknowledged.calls.size} calls`] : []),
  ]
}
