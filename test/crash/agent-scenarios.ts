import type { MessageId, RunId, ThreadId } from '../../src/base/ids.ts'
import { newActionId, newAttemptId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import { restartAction, settleAction, startAction } from '../../src/actions/perform.ts'
import type { Settlement } from '../../src/actions/perform.ts'
import { blockQuota, quotaSucceeded, waitFor } from '../../src/model/quota.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import type { ClientRequest } from '../../src/runs/run.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { parkForChildren, startChild } from '../../src/runs/children.ts'
import type { NewChild } from '../../src/runs/children.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { beginAnew, takeForCommand } from '../../src/runs/command-turn.ts'
import type { ToldTurn } from '../../src/runs/command-turn.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { parkRun, resumeDue } from '../../src/runs/park.ts'
import { heldAttempts, takeOverRun } from '../../src/runs/recover.ts'
import { sendMessage, wakeThread } from '../../src/runs/send.ts'
import type { Sending } from '../../src/runs/send.ts'
import { recordSummary, recordTurn } from '../../src/runs/turn.ts'
import type { Summary, Turn } from '../../src/runs/turn.ts'
import { withdrawMessage } from '../../src/runs/withdraw.ts'
import { LEASE_MS, addWorker, running } from '../support/world.ts'
import { byTester, newAttempt, scenario, succeeded, timedOut } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

const sending = (key: string): Sending => ({
  messageId: newMessageId(random),
  runId: newRunId(random),
  threadId: 'conversation' as ThreadId,
  agent: 'clerk',
  text: 'hello',
  key,
})

/** A run of an agent, claimed, with a message in its inbox. */
export async function talking({ store }: World) {
  const sent = await store.apply(sendMessage, sending('first'))
  const claimed = await store.apply(claimRun, {
    workerId: await addWorker(store),
    leaseMs: LEASE_MS,
    limits: {},
    attempt: newAttempt(),
    agents: ['clerk'],
  })
  if (claimed === undefined) throw new Error('nothing to claim')
  return {
    messageId: sent.message.id,
    ref: { id: claimed.attempt.id, runId: claimed.run.id, fence: claimed.run.fence },
  }
}

export const CURRENT = { agent: 'clerk', policy: [{ decision: 'allow' }], version: '' } as const

export const aTurn = (messageId: string, entries: readonly string[]): Turn => ({
  generation: 1,
  shown: [{ messageId, text: 'hello' }],
  reply: { text: 'I will', toolCalls: [] },
  usage: { inputTokens: 1, outputTokens: 2, costMicrousd: 3 },
  actions: entries.map((entry) => ({
    id: newActionId(random),
    mark: random.hex(15),
    callId: entry,
    tool: 'append',
    effect: 'write',
    repeats: 'once',
    input: { entry },
    signature: entry,
    verdict: { kind: 'allow', by: 'a rule', via: 'configuration' },
  })),
})

async function proposed(world: World, entries: readonly string[] = ['a']) {
  const { ref, messageId } = await talking(world)
  const recorded = await world.store.apply(recordTurn, ref, aTurn(messageId, entries))
  if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
  return { ref, actions: recorded.actions }
}

export async function started(world: World) {
  const { ref, actions } = await proposed(world, ['a', 'a'])
  const start = await world.store.apply(startAction, ref, actions[0]!.id, CURRENT)
  if (start.kind !== 'started') throw new Error(start.kind)
  return { ref, action: start.action, twin: actions[1]! }
}

const doneByTool: Settlement = { state: 'done', result: { ok: true }, by: 'its tool' }
const cutOff: Settlement = { state: 'in_doubt', error: 'cut off', by: 'nobody' }

const newChild = (parent: AttemptRef): NewChild => {
  const number = newActionId(random).slice('act_'.length)
  return {
    parentRunId: parent.runId,
    mode: 'background',
    agent: 'clerk',
    key: `delegate:${number}`,
    threadId: `thr_${number}` as ThreadId,
    runId: `run_${number}` as RunId,
    messageId: `msg_${number}` as MessageId,
    work: { task: 'count' },
    limits: { depth: 4, children: 20 },
    backlogLimit: 100,
  }
}

/** A run whose message is answered and which has a child at work. */
async function delegating(world: World) {
  const { ref, messageId } = await talking(world)
  await world.store.apply(recordTurn, ref, aTurn(messageId, []))
  const child = newChild(ref)
  await world.store.apply(startChild, child)
  return { ref, child }
}

const aClientTurn = (more: Partial<ClientRequest>) => {
  const client = { name: 'claude', vendor: 'anthropic', ...more } as const
  return { kind: 'command', argv: ['true'], cwd: '/', client } as const
}

const TOLD: ToldTurn = {
  client: 'claude',
  session: { id: 'one', totals: { costUsd: 0.5 } },
  heardAs: 'claude-one' as ThreadId,
  isOver: false,
  steps: [
    {
      text: 'let me look',
      calls: [
        { id: 'a', tool: 'Bash', effect: 'write', input: { command: 'ls' }, state: 'done', result: 'nothing' },
        { id: 'b', tool: 'Bash', effect: 'write', input: { command: 'make' }, state: 'open' },
        { id: 'c', tool: 'Edit', effect: 'write', input: {}, state: 'refused', error: 'not allowed' },
      ],
    },
  ],
}

const delegation: readonly Scenario[] = [
  scenario({ startChild }, 'an agent with a task', async (world) => [newChild((await talking(world)).ref)]),
  scenario({ startChild }, 'a command', async (world) => {
    const request = { kind: 'command', argv: ['true'], cwd: '/' } as const
    return [{ ...newChild((await talking(world)).ref), agent: 'command', work: { request } }]
  }),
  scenario({ parkForChildren }, 'a run with a child at work', async (world) => [(await delegating(world)).ref, false]),
  scenario({ finishRun }, 'a child whose parent waits for it', async (world) => {
    const { ref, child } = await delegating(world)
    await world.store.apply(parkForChildren, ref, false)
    const claimed = await world.store.apply(claimRun, {
      workerId: await addWorker(world.store),
      leaseMs: LEASE_MS,
      limits: {},
      attempt: newAttempt(),
      agents: ['clerk'],
      only: child.runId,
    })
    return [{ id: claimed!.attempt.id, runId: claimed!.run.id, fence: claimed!.run.fence }, succeeded]
  }),
  scenario({ cancelRun }, 'a parent with a child', async (world) => [(await delegating(world)).ref.runId, byTester]),
  scenario({ takeForCommand }, 'the turn of an agent that is a command', async (world) => {
    const { ref, messageId } = await talking(world)
    return [ref, [{ messageId, text: 'hello' }], { kind: 'command', argv: ['true'], cwd: '/' } as const]
  }),
  scenario({ takeForCommand }, 'the first turn of a client, whose session we name', async (world) => {
    const { ref, messageId } = await talking(world)
    return [ref, [{ messageId, text: 'hello' }], aClientTurn({ session: 'one', isNew: true })]
  }),
  scenario({ beginAnew }, 'the turn of a client whose session is gone', async (world) => {
    const { ref, messageId } = await talking(world)
    const request = aClientTurn({ session: 'gone', orElse: { argv: ['true', 'anew'], session: 'new' } })
    await world.store.apply(takeForCommand, ref, [{ messageId, text: 'hello' }], request)
    return [ref]
  }),
  scenario({ finishRun }, 'the turn of a client, with its steps and its session', async (world) => {
    const { ref, messageId } = await talking(world)
    await world.store.apply(
      takeForCommand,
      ref,
      [{ messageId, text: 'hello' }],
      aClientTurn({ session: 'one', isNew: true }),
    )
    return [ref, { ...succeeded, reply: 'done', told: TOLD }]
  }),
]

const acting: readonly Scenario[] = [
  scenario({ sendMessage }, 'to an idle thread', async () => [sending('first')]),
  scenario({ sendMessage }, 'to a busy thread', async (world) => {
    await talking(world)
    return [sending('second')]
  }),
  scenario({ withdrawMessage }, 'that waits beside one that is being answered', async (world) => {
    await talking(world)
    const { message } = await world.store.apply(sendMessage, sending('second'))
    return [message.id, byTester]
  }),
  scenario({ withdrawMessage }, 'whose run waits for it alone', async ({ store }) => {
    const { message } = await store.apply(sendMessage, sending('first'))
    return [message.id, byTester]
  }),
  scenario({ wakeThread }, 'a thread with messages and nobody at work', async ({ store }) => {
    const sent = await store.apply(sendMessage, sending('first'))
    await store.apply(cancelRun, sent.runId!, byTester)
    return ['conversation' as ThreadId, 'clerk', newRunId(random)]
  }),
  scenario(
    { recordTurn },
    'a reply with two actions',
    async (world) => {
      const { ref, messageId } = await talking(world)
      return [ref, aTurn(messageId, ['a', 'b'])]
    },
    'refused',
  ),
  scenario({ startAction }, 'an action that was allowed', async (world) => {
    const { ref, actions } = await proposed(world)
    return [ref, actions[0]!.id, CURRENT]
  }),
  scenario({ startAction }, 'a repeat of one that is done', async (world) => {
    const { ref, action, twin } = await started(world)
    await world.store.apply(settleAction, action, { state: 'done', result: 1, by: 'its tool' })
    return [ref, twin.id, CURRENT]
  }),
  scenario({ restartAction }, 'one that is proven not to have begun', async (world) => {
    const { ref, action } = await started(world)
    return [ref, action, CURRENT]
  }),
  scenario({ settleAction }, 'done', async (world) => [(await started(world)).action, doneByTool]),
  scenario({ settleAction }, 'in doubt', async (world) => [(await started(world)).action, cutOff]),
  scenario({ finishRun }, 'a run with an action that had not begun', async (world) => [
    (await proposed(world)).ref,
    timedOut,
  ]),
  scenario({ resumeDue }, 'a run whose instant has come', async (world) => {
    const { ref } = await running(world.store)
    await world.store.apply(parkRun, ref, 'a rate limit', world.clock.now() + 1_000)
    world.clock.step(2_000)
    return [10]
  }),
]

const asking: readonly Scenario[] = [
  scenario({ blockQuota }, 'a provider that asks to wait', async () => ['anthropic', 30_000, 'rate limited']),
  scenario({ waitFor }, 'a quota that is blocked', async ({ store }) => {
    await store.apply(blockQuota, 'anthropic', 30_000, 'rate limited')
    return ['anthropic']
  }),
  scenario({ quotaSucceeded }, 'the probe of a quota', async ({ store, clock }) => {
    const { blockedUntil } = await store.apply(blockQuota, 'anthropic', 30_000, 'rate limited')
    clock.step(600_000)
    return ['anthropic', { at: blockedUntil, blockedUntil }]
  }),
]

/** A run with two steps behind it, the first of which a summary is to cover. */
async function summing(world: World): Promise<[AttemptRef, Summary]> {
  const { ref, messageId } = await talking(world)
  const recorded = await world.store.apply(recordTurn, ref, { ...aTurn(messageId, []), note: 'go on' })
  if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
  const body = { text: 'in short', covers: recorded.entries[0]!.seq, replies: 0, prompt: 'hello', made: 'model' }
  const usage = { inputTokens: 100, outputTokens: 20, costMicrousd: 7 }
  return [ref, { id: random.hex(8), generation: 1, body, usage }]
}

const compacting: readonly Scenario[] = [
  scenario({ recordSummary }, 'the older part of a conversation', summing),
  scenario({ recordSummary }, 'a second summary', async (world) => {
    const [ref, summary] = await summing(world)
    await world.store.apply(recordSummary, ref, summary)
    return [ref, { ...summary, id: random.hex(8) }]
  }),
  scenario({ recordSummary }, 'of a worker that was fenced', async (world) => {
    const [ref, summary] = await summing(world)
    const held = (await world.store.read(heldAttempts)).find(({ id }) => id === ref.id)!
    const taker = { workerId: await addWorker(world.store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    await world.store.apply(takeOverRun, held, 'owner-dead', taker)
    return [ref, summary]
  }),
]

/** Of agents: their messages, turns, actions, children and model calls. */
export const AGENT_SCENARIOS: readonly Scenario[] = [...asking, ...acting, ...delegation, ...compacting]
