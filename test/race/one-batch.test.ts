import { expect, test } from 'vitest'

import { newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { openChildren, parkForChildren, startChild } from '../../src/runs/children.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { isTerminal, listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import type { Store } from '../../src/store/store.ts'
import { consumeMessages } from '../../src/threads/consume.ts'
import { idleThreads, pendingMessages } from '../../src/threads/message.ts'
import { aChild, aClaimant, claimAgent } from '../support/children.ts'
import { engines } from '../support/engines.ts'
import { violations } from '../support/invariants.ts'
import { late } from '../support/late.ts'
import { printedChance } from '../support/seed.ts'
import type { Chance } from '../support/seed.ts'
import { reread } from '../support/world.ts'

const ROUNDS = process.env['HOLDFAST_DEEP'] === '1' ? 1_000 : 20
/** A transition of these has about as many statements: some of them lie beside each other, some after. */
const MOST_LATE = 9
const AGENTS = ['clerk', 'helper']

function* consume(id: string, runId: RunId, threadId: ThreadId) {
  yield* consumeMessages([id], runId, threadId)
}

/** A run with two children at work, perhaps asleep until they have ended. */
interface Family {
  readonly threadId: ThreadId
  readonly parent: AttemptRef
  readonly children: readonly AttemptRef[]
  readonly isParked: boolean
}

const letter = (threadId: ThreadId, key: string) => ({
  messageId: newMessageId(random),
  runId: newRunId(random),
  threadId,
  agent: 'clerk',
  text: key,
  key,
})

const limits = { depth: 4, children: 9 }

async function aFamily(store: Store, luck: Chance, threadId: ThreadId): Promise<Family> {
  const { message, runId } = await store.apply(sendMessage, letter(threadId, 'first'))
  const parent = await claimAgent(store, AGENTS, runId)
  await store.apply(consume, message.id, parent.runId, threadId)
  const children: AttemptRef[] = []
  for (const mode of ['wait', luck.below(2) === 0 ? 'wait' : 'background'] as const) {
    const child = aChild(parent, { mode, limits, backlogLimit: 100_000 })
    await store.apply(startChild, child)
    children.push(await claimAgent(store, AGENTS, child.runId))
  }
  const isParked = luck.below(2) === 0
  if (isParked) await store.apply(parkForChildren, parent, false)
  return { threadId, parent, children, isParked }
}

interface Deed {
  readonly name: string
  readonly act: () => Promise<unknown>
}

/** What may happen to a family in one moment, each with its chance, each some statements late. */
async function deeds(store: Store, luck: Chance, { threadId, parent, children, isParked }: Family): Promise<Deed[]> {
  const lateBy = () => luck.below(MOST_LATE)
  const claimant = await aClaimant(store, AGENTS, parent.runId)
  const third = aChild(parent, { mode: 'wait', limits, backlogLimit: 100_000 })
  const [one, two] = [children[0]!, children[1]!]
  const failed = { state: 'failed', code: 'model', error: 'x' } as const
  const possible: readonly [name: string, happens: boolean, act: (by: number) => Promise<unknown>][] = [
    ['park', !isParked && luck.below(3) > 0, (by) => store.apply(late(by, parkForChildren), parent, false)],
    ['end one', luck.below(2) === 0, (by) => store.apply(late(by, finishRun), one, { state: 'succeeded' })],
    ['end two', luck.below(2) === 0, (by) => store.apply(late(by, finishRun), two, failed)],
    ['cancel', luck.below(2) === 0, (by) => store.apply(late(by, cancelRun), parent.runId, { by: 'tester' })],
    ['send', luck.below(2) === 0, (by) => store.apply(late(by, sendMessage), letter(threadId, 'second'))],
    ['claim', luck.below(2) === 0, (by) => store.apply(late(by, claimRun), claimant)],
    ['start', !isParked && luck.below(3) === 0, (by) => store.apply(late(by, startChild), third)],
  ]
  const chosen = possible.filter(([, happens]) => happens).map(([name, , act]) => ({ name, act, by: lateBy() }))
  return shuffled(chosen, luck).map(({ name, act, by }) => ({ name: `${name}+${by}`, act: () => act(by) }))
}

function shuffled<T>(list: readonly T[], luck: Chance): T[] {
  const rest = [...list]
  return list.map(() => rest.splice(luck.below(rest.length), 1)[0]!)
}

/** What is wrong with a family after all of it has happened. */
async function faults(store: Store, { threadId, parent }: Family, cancel: unknown): Promise<string[]> {
  const now = await reread(store, parent.runId)
  const open = await store.read(openChildren, parent.runId)
  const prompts = (await store.read(pendingMessages, threadId, 10)).filter(({ kind }) => kind === 'prompt')
  const found: string[] = []
  if (now.state === 'parked' && (open.length === 0 || prompts.length > 0)) found.push('it sleeps and nobody wakes it')
  if (isTerminal(now.state) && prompts.length > 0) {
    const active = await store.read(listRuns, { threadId, limit: 1, states: ['queued', 'running', 'parked'] })
    const idle = await store.read(idleThreads, ['clerk'], 10, threadId)
    if (active.length + idle.length === 0) found.push('a message is forgotten')
  }
  if (cancel === undefined) return found
  const isCancelled = now.state === 'cancelled' || (now.state === 'running' && now.cancelRequestedAt !== null)
  if (!isCancelled) found.push(`the cancel is lost: ${now.state}`)
  if (cancel === 'cancelled' && now.state !== 'cancelled') found.push(`it is called cancelled and is ${now.state}`)
  for (const { id } of open) {
    if ((await reread(store, id)).cancelRequestedAt === null) found.push('a child goes on without its parent')
  }
  return found
}

test(`${ROUNDS} times a run, its children, a cancel and a message meet in one batch: nobody sleeps for ever, no cancel is lost [runs/cancel-is-final]`, async () => {
  const luck = printedChance('members of one batch')
  const store = await (await engines.find(({ name }) => name === 'postgres')!.database()).open()
  for (let round = 0; round < ROUNDS; round += 1) {
    const family = await aFamily(store, luck, `thread-${round}` as ThreadId)
    const chosen = await deeds(store, luck, family)
    const answers = await Promise.all(chosen.map(({ act }) => act()))
    const cancel = chosen.findIndex(({ name }) => name.startsWith('cancel'))
    const answer = cancel < 0 ? undefined : (answers[cancel] as { kind: string }).kind
    const what = `round ${round}${family.isParked ? ', parked' : ''}: ${chosen.map(({ name }) => name).join(', ')}`
    expect(await faults(store, family, answer), what).toEqual([])
    if (round % 20 === 0) expect(await violations(store), what).toEqual([])
  }
  expect(await violations(store)).toEqual([])
}, 300_000)
