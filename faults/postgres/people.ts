import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import type { Runtime } from '../../src/index.ts'
import { until } from '../../test/support/until.ts'
import { Dice } from '../simulation/seeded.ts'
import type { World } from './world.ts'

export interface Acknowledged {
  readonly messages: string[]
  readonly calls: { readonly runId: string; readonly result: Promise<unknown> }[]
}

/** The same request until it is acknowledged: the key says that it is the same. */
function untilAcknowledged<T>(request: () => Promise<T>): Promise<T> {
  return until('a request is acknowledged', () => request().catch(() => undefined))
}

/** Sends messages and calls functions, one after another, and keeps what was acknowledged. */
export async function askForWork(office: Runtime, world: World, at: number, enough: () => boolean): Promise<void> {
  const { acknowledged } = world
  // Not the dice of what goes wrong: how often somebody asks depends on the machine.
  const dice = new Dice(at)
  for (let number = 0; !enough(); number++) {
    const key = `${at}-${number}`
    const sent = await untilAcknowledged(() => office.send({ agent: 'clerk', text: key, key: `message ${key}` }))
    acknowledged.messages.push(sent.messageId)
    const call = await untilAcknowledged(() =>
      office.call({ function: 'adder', input: at * 1_000_000 + number, key: `call ${key}` }),
    )
    const result = call.result()
    result.catch(() => {})
    acknowledged.calls.push({ runId: call.runId, result })
    await new Promise((resolve) => setTimeout(resolve, 50 + dice.below(100)))
  }
}

/** A person who looks at what waits, and settles doubts by what the ledger says. */
export async function decide({ office, ledger }: World): Promise<void> {
  for (const { id, digest } of await office.read(pendingApprovals, 100))
    await office.apply(decideApproval, id, { kind: decisionFor(id), by: 'a person', via: 'a test', digest })
  for (const { id, tool, runId } of await office.read(openDoubts, 100)) {
    const happened = ledger.timesOf(id) + ledger.timesOf(stepKey(runId, tool)) > 0
    const kind = happened ? 'happened' : 'did-not-happen'
    await office.apply(resolveDoubt, id, { kind, by: 'a person', why: 'the ledger says so' })
  }
}

/** What a step of a function is told as its key. */
export const stepKey = (runId: string, name: string) => `${runId}/${name}`

/** The same each time it is asked for: a person who was cut off does not change his mind. */
const decisionFor = (id: string) => (Number.parseInt(id.slice(-2), 16) % 4 === 0 ? 'deny' : 'approve')
