import { existsSync } from 'node:fs'

import type { Action } from '../../actions/action.ts'
import type { PolicyRule } from '../../actions/policy.ts'
import type { Randomness, RunId, ThreadId } from '../../base/ids.ts'
import { formatDuration } from '../../base/duration.ts'
import { describeError } from '../../base/errors.ts'
import { ensureFolder } from '../../base/files.ts'
import { Stopped } from '../../loop/act.ts'
import type { ActionFolders } from '../../loop/act.ts'
import { runAgent } from '../../loop/loop.ts'
import type { LoopEnd, LoopEvent } from '../../loop/loop.ts'
import { DEFAULT_LIMITS, inWords } from '../../loop/limits.ts'
import type { RunLimits } from '../../loop/limits.ts'
import type { AskModel, Tool } from '../../loop/ports.ts'
import { addUsage, NO_USAGE } from '../../loop/usage.ts'
import type { Claim } from '../../runs/claim.ts'
import { keepLateReply } from '../../runs/finish.ts'
import type { Outcome } from '../../runs/finish.ts'
import { parkRun } from '../../runs/park.ts'
import { findRun } from '../../runs/run.ts'
import type { Usage } from '../../runs/run.ts'
import { countReplies } from '../../threads/conversation.ts'
import type { WorkspaceRequest } from '../../workspace/workspace.ts'
import type { FunctionAgent } from '../functions/calls.ts'
import type { CommandAgent } from './command-agent.ts'
import { finishClaim, placeFor, refOf, untilStored } from '../execute.ts'
import type { Executor } from '../execute.ts'
import { commandFolder } from '../home.ts'
import { endRivals, wasElsewhere } from '../rivals.ts'

/** An agent of the configuration, with its model and tools at hand. */
export interface OpenAgent {
  readonly name: string
  /** As the configuration names it. */
  readonly model?: string
  readonly system: string
  readonly ask: AskModel
  readonly tools: ReadonlyMap<string, Tool>
  /** The same, at work in another folder: the tree of a run's workspace. */
  readonly toolsIn?: (folder: string) => ReadonlyMap<string, Tool>
  /** Tools that somebody else has, and that are known once he was asked; a run that cannot get them fails. */
  readonly foreignTools?: (run: ForeignRun, signal: AbortSignal) => Promise<ReadonlyMap<string, Tool>>
  /** One of those, as a person has accepted it, without asking anybody. */
  readonly acceptedTool?: (tool: string) => Promise<Tool | undefined>
  readonly policy: readonly PolicyRule[]
  /** What each of its runs may spend; the rest is as everywhere. */
  readonly limits?: Partial<RunLimits>
  /** The window of its model. */
  readonly contextTokens?: number
  /** A write that was cut off: wait for evidence or a person, or go on without knowing. */
  readonly doubts?: 'park' | 'tell'
  /** How long a person has to answer. */
  readonly approvalMs?: number
  /** What its runs do to files: all of it, or nothing. */
  readonly workspace?: WorkspaceRequest
}

export interface ForeignRun {
  readonly id: RunId
  /** It had begun before, so it may have actions that only its tools can settle. */
  readonly resumed: boolean
}

/** What a configuration can call an agent. */
export type AnyAgent = OpenAgent | CommandAgent | FunctionAgent

/** What whoever watches this process hears of its agents as it happens; the record is in the store. */
export type LiveEvent = {
  readonly runId: RunId
  readonly threadId: ThreadId
  readonly agent: string
} & LoopEvent

type Ending = 'cancelled' | 'lease-lost' | 'timeout' | 'its workspace cannot be opened'

/** Carries out an agent's run: its turns, and what their end means for the run. */
export async function executeAgent(
  executor: Executor,
  claimed: Claim,
  given: OpenAgent,
  random: Randomness,
): Promise<void> {
  const place = await placeFor(executor, claimed, await filesOf(executor, claimed, given))
  if (place === undefined) return
  const { claim, cwd, ends } = place
  const agent = cwd === undefined ? given : { ...given, tools: given.toolsIn?.(cwd) ?? given.tools }
  const { store, clock, home } = executor
  const stop = new AbortController()
  let ending: Ending | undefined
  const stopFor = (why: Ending) => {
    ending ??= why
    // In the words that the tools will quote: "timed out after 30s", "cancelled".
    stop.abort(why === 'timeout' ? timedOut(timeoutMs) : why)
  }
  const timeoutMs = claim.run.request.timeoutMs ?? agent.limits?.timeoutMs ?? DEFAULT_LIMITS.timeoutMs
  executor.onCommand(claim.attempt.id, { stop: stopFor })
  if (claim.run.cancelRequestedAt !== null || ends?.state === 'cancelled') stopFor('cancelled')
  if (ends !== undefined) stopFor('its workspace cannot be opened')
  const leftMs = timeoutMs - workedMs(claim)
  const disarm = leftMs > 0 ? clock.after(leftMs, () => stopFor('timeout'), { ref: true }) : () => {}
  if (leftMs <= 0) stopFor('timeout')
  const about = { runId: claim.run.id, threadId: claim.run.threadId, agent: agent.name }
  const emit = (event: LoopEvent) => executor.live?.({ ...about, ...event })
  const ports = {
    ...agent,
    limits: limitsOf(agent, claim),
    store,
    clock,
    random,
    agent: agent.name,
    folders: foldersIn(home),
    whoCouldStill: (runId: RunId) => endRivals(store, clock, runId),
    wasElsewhere: (runId: RunId) => wasElsewhere(store, runId),
    // Where nothing can go on nobody is waited for.
    aboutToWait: () =>
      ends === undefined ? keepFiles(executor, claim) : Promise.reject(new Stopped('cancel-requested')),
    onAction: (action: Action) => emit({ kind: 'action', action }),
    emit,
  }
  try {
    const tools = await allTools(agent, claim, stop.signal)
    const end = 'kind' in tools ? tools : await runAgent({ ...ports, tools }, claim, stop.signal)
    await conclude(executor, claim, end, { ending, ends, timeoutMs })
  } finally {
    disarm()
  }
}

/** A run works where it began: to one that has begun without a workspace its agent's comes too late. */
async function filesOf(
  executor: Executor,
  { run }: Claim,
  { workspace }: OpenAgent,
): Promise<WorkspaceRequest | undefined> {
  const asked = run.request.workspace ?? workspace
  if (asked === undefined || run.workspace !== null) return asked
  const { count } = await untilStored(executor, () => executor.store.read(countReplies, run.id))
  return count === 0 ? asked : undefined
}

/** What was said for this run counts where it is less. */
function limitsOf({ limits = {} }: OpenAgent, { run: { request } }: Claim): Partial<RunLimits> {
  const most = request.kind === 'agent' ? request.maxCostMicrousd : undefined
  if (most === undefined) return limits
  return { ...limits, costMicrousd: Math.min(most, limits.costMicrousd ?? DEFAULT_LIMITS.costMicrousd) }
}

async function allTools(
  { tools, foreignTools }: OpenAgent,
  { run }: Claim,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Tool> | LoopEnd> {
  if (foreignTools === undefined) return tools
  try {
    return new Map([...tools, ...(await foreignTools({ id: run.id, resumed: run.attempt > 1 }, signal))])
  } catch (error) {
    // Nothing more is asked of them, and what was under way has to be ended.
    if (signal.aborted) return tools
    return { kind: 'finished', outcome: { state: 'failed', code: 'tool', error: describeError(error) } }
  }
}

const timedOut = (timeoutMs: number) => `timed out after ${formatDuration(timeoutMs)}`

/** By the database's clock: from its first start to this attempt, the time that it was parked taken out. */
const workedMs = ({ run, attempt }: Claim): number =>
  Math.max(0, attempt.claimedAt - (run.startedAt ?? attempt.claimedAt) - run.parkedMs)

const CANCELLED: Outcome = { state: 'cancelled' }

/** With what the run has spent, what was not recorded of it included. */
async function outOfTime(
  executor: Executor,
  { run }: Claim,
  timeoutMs: number,
  spent: Usage = NO_USAGE,
): Promise<Outcome> {
  const { store } = executor
  const [now = run, { count }] = await untilStored(executor, () =>
    Promise.all([store.read(findRun, run.id), store.read(countReplies, run.id)]),
  )
  const words = inWords({ turns: count, usage: addUsage(now, spent) })
  return { state: 'failed', code: 'timeout', error: `${timedOut(timeoutMs)}; ${words}` }
}

/** Its tree may be gone when it goes on. */
async function keepFiles(executor: Executor, claim: Claim): Promise<void> {
  if (claim.run.workspace === 'transaction') await executor.workspaces?.checkpoint(executor, claim)
}

export const foldersIn = (home: string): ActionFolders => ({
  path: (mark, theirs) => commandFolder(theirs ?? home, mark),
  prepare: (mark) => ensureFolder(commandFolder(home, mark)),
  isThere: (mark, theirs) => existsSync(commandFolder(theirs ?? home, mark)),
})

/** Why its turns were told to stop, if they were. */
interface Stay {
  readonly ending: Ending | undefined
  readonly ends: Outcome | undefined
  readonly timeoutMs: number
}

async function conclude(
  executor: Executor,
  claim: Claim,
  end: LoopEnd,
  { ending, ends, timeoutMs }: Stay,
): Promise<void> {
  const ref = refOf(claim)
  if (end.kind === 'left') return
  if (end.kind === 'finished') return finishPaid(executor, claim, end.outcome)
  if (end.kind === 'parked') {
    await keepFiles(executor, claim)
    const parked = await untilStored(executor, () =>
      executor.store.apply(parkRun, ref, end.reason, end.until, end.spent),
    )
    if (parked.kind === 'refused') await finishPaid(executor, claim, { state: 'cancelled', usage: end.spent })
    return
  }
  if (end.why === 'superseded') return
  if (ending === 'lease-lost') throw new Error('its worker could not renew its lease')
  const { spent, taken } = end
  const outcome = ending === 'timeout' ? await outOfTime(executor, claim, timeoutMs, spent) : (ends ?? CANCELLED)
  await finishPaid(executor, claim, {
    ...outcome,
    ...(spent === undefined ? {} : { usage: spent }),
    ...(taken === undefined ? {} : { taken }),
  })
}

/** If the run is another's by now, what was paid for and is on no bill yet is kept beside it. */
async function finishPaid(executor: Executor, claim: Claim, outcome: Outcome): Promise<void> {
  const run = await finishClaim(executor, claim, outcome)
  const { usage } = outcome
  if (usage === undefined || run?.fence === claim.run.fence) return
  await untilStored(executor, () => executor.store.apply(keepLateReply, refOf(claim), { text: '', usage }))
}
