import { existsSync } from 'node:fs'

import type { Action } from '../actions/action.ts'
import type { PolicyRule } from '../actions/policy.ts'
import { newRunId } from '../base/ids.ts'
import type { Randomness, RunId, ThreadId } from '../base/ids.ts'
import { formatDuration } from '../base/duration.ts'
import { ensureFolder } from '../base/files.ts'
import type { ActionFolders } from '../loop/act.ts'
import { runAgent } from '../loop/loop.ts'
import type { LoopEnd, LoopEvent } from '../loop/loop.ts'
import type { AskModel, Tool } from '../loop/ports.ts'
import type { Claim } from '../runs/claim.ts'
import type { Outcome } from '../runs/finish.ts'
import { parkRun } from '../runs/park.ts'
import { wakeThread } from '../runs/send.ts'
import { pendingMessages } from '../threads/message.ts'
import { finish, refOf, untilStored } from './execute.ts'
import type { Executor } from './execute.ts'
import { commandFolder } from './home.ts'

/** An agent of the configuration, with its model and tools at hand. */
export interface OpenAgent {
  readonly name: string
  readonly system: string
  readonly ask: AskModel
  readonly tools: ReadonlyMap<string, Tool>
  readonly policy: readonly PolicyRule[]
  readonly timeoutMs?: number
}

/** What whoever watches this process hears of its agents as it happens; the record is in the store. */
export type LiveEvent = {
  readonly runId: RunId
  readonly threadId: ThreadId
  readonly agent: string
} & LoopEvent

type Ending = 'cancelled' | 'lease-lost' | 'timeout'

/** Carries out an agent's run: its turns, and what their end means for the run. */
export async function executeAgent(
  executor: Executor,
  claim: Claim,
  agent: OpenAgent | undefined,
  random: Randomness,
): Promise<void> {
  if (agent === undefined) throw new Error(`there is no agent ${claim.run.agent} in this process`)
  const { store, clock, home } = executor
  const stop = new AbortController()
  executor.onCommand(claim.attempt.id, { stop: (why) => stop.abort(why) })
  if (claim.run.cancelRequestedAt !== null) stop.abort('cancelled')
  const timeoutMs = claim.run.request.timeoutMs ?? agent.timeoutMs
  const disarm = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, () => stop.abort('timeout'), { ref: true })
  const about = { runId: claim.run.id, threadId: claim.run.threadId, agent: agent.name }
  const emit = (event: LoopEvent) => executor.live?.({ ...about, ...event })
  const ports = {
    ...agent,
    store,
    clock,
    random,
    agent: agent.name,
    folders: foldersIn(home),
    onAction: (action: Action) => emit({ kind: 'action', action }),
    emit,
  }
  try {
    const end = await runAgent(ports, claim, stop.signal)
    await conclude(executor, claim, end, stop.signal.reason as Ending | undefined, timeoutMs)
  } finally {
    disarm()
  }
  await wakeAgain(executor, claim, random)
}

const foldersIn = (home: string): ActionFolders => ({
  path: (mark) => commandFolder(home, mark),
  prepare: (mark) => ensureFolder(commandFolder(home, mark)),
  isThere: (mark) => existsSync(commandFolder(home, mark)),
})

async function conclude(
  executor: Executor,
  claim: Claim,
  end: LoopEnd,
  ending: Ending | undefined,
  timeoutMs: number | undefined,
): Promise<void> {
  const ref = refOf(claim)
  if (end.kind === 'finished') return void (await finish(executor, ref, end.outcome))
  if (end.kind === 'parked') {
    const parked = await untilStored(executor, () =>
      executor.store.apply(parkRun, ref, end.reason, end.until, end.spent),
    )
    if (parked.kind === 'refused') await finish(executor, ref, { state: 'cancelled', usage: end.spent })
    return
  }
  if (end.why === 'superseded') return
  if (ending === 'lease-lost') throw new Error('its worker could not renew its lease')
  const error = `timed out after ${formatDuration(timeoutMs ?? 0)}`
  const outcome: Outcome = ending === 'timeout' ? { state: 'failed', code: 'timeout', error } : { state: 'cancelled' }
  const { spent, taken } = end
  await finish(executor, ref, {
    ...outcome,
    ...(spent === undefined ? {} : { usage: spent }),
    ...(taken === undefined ? {} : { taken }),
  })
}

/** A message that came while the run was ending waits for no heartbeat. */
async function wakeAgain({ store }: Executor, { run }: Claim, random: Randomness): Promise<void> {
  const [waiting] = await store.read(pendingMessages, run.threadId, 1)
  if (waiting !== undefined) await store.apply(wakeThread, run.threadId, run.agent, newRunId(random))
}
