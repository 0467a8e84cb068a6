import { actionsOfRun } from '../../src/actions/action.ts'
import { approvalsOfRun } from '../../src/actions/approval.ts'
import type { RunId } from '../../src/base/ids.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Run } from '../../src/runs/run.ts'
import { stepsOf } from '../../src/runs/step.ts'
import { findMessage } from '../../src/threads/message.ts'
import { violations } from '../../test/support/invariants.ts'
import { imbalances } from '../../test/support/load.ts'
import { stepKey } from './people.ts'
import type { World } from './world.ts'

export interface Verdict {
  readonly runs: number
  readonly effects: number
  readonly problems: readonly string[]
}

/** Everything that is wrong with a world that has come to rest. */
export async function verdictOn(world: World): Promise<Verdict> {
  const { office, books, load, ledger } = world
  const runs = await allRuns(world)
  const effects = ledger.effects()
  const problems = [
    ...(await imbalances(load, books)).map((problem) => `load: ${problem}`),
    ...(await violations(office)).map((violation) => `invariant: ${violation}`),
    ...runs.filter(({ endedAt }) => endedAt === null).map(({ id, state }) => `never ended: ${id} is ${state}`),
    ...runs.filter(({ state }) => state === 'failed').map(({ id, error }) => `failed: ${id}, ${JSON.stringify(error)}`),
    ...doubled(effects.map(({ entry }) => entry)).map((entry) => `done twice: ${entry}`),
    ...(await wrongEffects(world, runs)),
    ...(await lost(world, runs)),
  ]
  return { runs: runs.length + load.runs.length, effects: effects.length, problems }
}

const doubled = (entries: readonly string[]) => [
  ...new Set(entries.filter((entry, index) => entries.indexOf(entry) < index)),
]

async function allRuns({ office }: World): Promise<Run[]> {
  const runs: Run[] = []
  for (let page = await office.read(listRuns, { limit: 100 }); page.length > 0;) {
    runs.push(...page)
    page = await office.read(listRuns, { limit: 100, after: page.at(-1)!.id })
  }
  return runs
}

/** What the ledger says against what we say. */
async function wrongEffects({ office, ledger }: World, runs: readonly Run[]): Promise<string[]> {
  const wrong: string[] = []
  const times = new Map<string, number>()
  for (const { key } of ledger.effects()) times.set(key, (times.get(key) ?? 0) + 1)
  const known = new Set<string>()
  const compare = (key: string, name: string, state: string) => {
    known.add(key)
    const done = times.get(key) ?? 0
    if (done !== (state === 'done' ? 1 : 0)) wrong.push(`${key} (${name}) is ${state} and was done ${done} times`)
  }
  for (const { id, agent } of runs) {
    if (agent === 'adder')
      for (const { name, state } of await office.read(stepsOf, id)) compare(stepKey(id, name), name, state)
    if (agent !== 'clerk') continue
    const approvals = await office.read(approvalsOfRun, id)
    for (const action of await office.read(actionsOfRun, id)) {
      if (action.repeatOf === null) compare(action.id, action.tool, action.state)
      const asked = approvals.find(({ actionId }) => actionId === action.id)
      if (action.tool === 'pay' && times.has(action.id) && asked?.state !== 'consumed')
        wrong.push(`nobody allowed it: ${action.id} was done, its approval is ${asked?.state}`)
    }
  }
  for (const { key, entry } of ledger.effects()) if (!known.has(key)) wrong.push(`unknown effect: ${key} ${entry}`)
  return wrong
}

/** Whatever was acknowledged is there, and was answered. */
async function lost({ office, acknowledged }: World, runs: readonly Run[]): Promise<string[]> {
  const wrong: string[] = []
  for (const id of acknowledged.messages) {
    const message = await office.read(findMessage, id)
    if (message?.state !== 'consumed') wrong.push(`message ${id} was acknowledged, and is ${message?.state ?? 'gone'}`)
  }
  const known = new Set<RunId>(runs.map(({ id }) => id))
  for (const { runId, result } of acknowledged.calls) {
    if (!known.has(runId as RunId)) wrong.push(`call ${runId} was acknowledged, and is gone`)
    const heard = await Promise.race([result.then(() => 'heard', String), soon()])
    if (heard !== 'heard') wrong.push(`the result of ${runId} was not heard: ${heard}`)
  }
  const clerks = runs.filter(({ agent }) => agent === 'clerk').length
  if (clerks > acknowledged.messages.length) wrong.push(`${clerks} runs of ${acknowledged.messages.length} messages`)
  return wrong
}

/** Who waits for a result hears of it by looking, if nothing else tells him. */
const soon = () => new Promise<string>((resolve) => void setTimeout(resolve, 20_000, 'nothing').unref())
