import { actionsOfRun } from '../../src/actions/action.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { countMessages, messagesOf } from '../../src/threads/message.ts'
import { violations } from '../../test/support/invariants.ts'
import { FIRINGS, LEAD } from './people.ts'
import type { World } from './world.ts'

/** Everything that is wrong with a world that has come to rest. */
export async function verdictOn(world: World, store: Store): Promise<string[]> {
  const runs = await store.read(listRuns, { limit: 100 })
  const open = runs.filter(({ endedAt }) => endedAt === null)
  return [
    ...(await violations(store)).map((violation) => `invariant: ${violation}`),
    ...world.ledger.doubles().map((double) => `done twice: ${double}`),
    ...open.map(({ id, state, parkedFor }) => `never ended: ${id} is ${state} ${parkedFor ?? ''}`),
    ...(await wrongActions(world, store, runs)),
    ...(await wrongMessages(store, runs)),
    ...wrongRuns(runs),
  ]
}

/** What the ledger says against what we say. */
async function wrongActions({ ledger }: World, store: Store, runs: readonly Run[]): Promise<string[]> {
  const wrong: string[] = []
  const known = new Set<string>()
  for (const { id } of runs) {
    for (const action of await store.read(actionsOfRun, id)) {
      known.add(action.id)
      if (action.tool === 'delegate' || action.repeatOf !== null) continue
      const times = ledger.timesOf(action.id)
      const say = `${action.id} (${action.tool}) is ${action.state} and was done ${times} times`
      if (action.state === 'done' && times !== 1) wrong.push(`lost or doubled: ${say}`)
      if (['failed', 'denied', 'skipped', 'withdrawn'].includes(action.state) && times > 0)
        wrong.push(`denied, and done: ${say}`)
    }
  }
  for (const { actionId, entry } of ledger.effects)
    if (!known.has(actionId)) wrong.push(`unknown effect: ${actionId} ${entry}`)
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
  for (const { state, count } of counts)
    if (!['consumed', 'dead'].includes(state)) wrong.push(`${count} messages are ${state}`)
  return wrong
}

function wrongRuns(runs: readonly Run[]): string[] {
  const rounds = runs.filter(({ agent, parentRunId }) => agent === 'clerk' && parentRunId === null)
  const leads = runs.filter(({ agent }) => agent === 'lead')
  return [
    ...(rounds.length > FIRINGS ? [`${rounds.length} runs of ${FIRINGS} firings`] : []),
    ...(leads.length === 0 ? ['the work that was acknowledged is gone'] : []),
    ...runs
      .filter(({ state, error }) => state === 'failed' && /internal/.test(String(error)))
      .map(({ id, error }) => `failed inside: ${id} ${String(error)}`),
  ]
}
