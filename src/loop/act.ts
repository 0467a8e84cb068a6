import { findAction, isSettled } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { restartAction, settleAction, startAction } from '../actions/perform.ts'
import type { Settlement } from '../actions/perform.ts'
import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import type { Store } from '../store/store.ts'
import type { Tool, ToolContext, ToolOutcome } from './ports.ts'

export interface ActPorts {
  readonly store: Store
  readonly clock: Clock
  readonly tools: ReadonlyMap<string, Tool>
  /** Where a try of an action leaves what must outlive this process. */
  readonly folders: ActionFolders
  readonly onAction: (action: Action) => void
}

export interface ActionFolders {
  path(mark: string): string
  /** Made before the intent is recorded: one that is missing later was removed, and proves nothing. */
  prepare(mark: string): Promise<void>
  isThere(mark: string): boolean
}

/** The run may not go on: it was cancelled, or another worker has it. */
export class Stopped extends Error {
  readonly why: 'cancel-requested' | 'superseded'
  constructor(why: 'cancel-requested' | 'superseded') {
    super(why)
    this.why = why
  }
}

/**
 * Brings every action of one reply to its end: reads side by side, writes one after the other in the model's order. One
 * that fails does not stop the others. What had started before a crash is first looked up.
 */
export async function settleActions(
  ports: ActPorts,
  attempt: AttemptRef,
  actions: readonly Action[],
  signal: AbortSignal,
): Promise<Action[]> {
  const settled = new Map<string, Action>()
  const settle = async (action: Action) => {
    const end = await settleOne(ports, attempt, action, signal)
    settled.set(action.id, end)
    ports.onAction(end)
  }
  const reads = actions.filter(({ effect }) => effect === 'read')
  for (let next = 0; next < reads.length; next += LIMITS.readsTogether) {
    await Promise.all(reads.slice(next, next + LIMITS.readsTogether).map(settle))
  }
  for (const action of actions.filter(({ effect }) => effect === 'write')) await settle(action)
  return actions.map((action) => settled.get(action.id) ?? action)
}

async function settleOne(ports: ActPorts, attempt: AttemptRef, action: Action, signal: AbortSignal): Promise<Action> {
  if (isSettled(action.state)) return action
  if (action.state === 'started') return recoverAction(ports, attempt, action, signal)
  await ports.folders.prepare(markOf(action, action.tries + 1))
  const start = await ports.store.apply(startAction, attempt, action.id)
  if (start.kind === 'refused') throw new Stopped(start.why)
  if (start.kind === 'settled') return start.action
  ports.onAction(start.action)
  return performAction(ports, start.action, signal)
}

async function performAction(ports: ActPorts, action: Action, signal: AbortSignal): Promise<Action> {
  const tool = ports.tools.get(action.tool)
  const outcome =
    tool === undefined
      ? ({ kind: 'failed', error: `there is no tool ${action.tool} any more` } as const)
      : await guarded(tool, (context) => tool.perform(action.input, context), contextOf(ports, action, tool, signal))
  return ports.store.apply(settleAction, action, settlementOf(outcome, 'its tool'))
}

/**
 * The worker died after this action's intent was recorded. Evidence first: what the tool's own process left behind, then
 * the tool's idempotency, then its probe. Without any, a write stays in doubt; a read is simply performed again.
 */
async function recoverAction(
  ports: ActPorts,
  attempt: AttemptRef,
  action: Action,
  signal: AbortSignal,
): Promise<Action> {
  const tool = ports.tools.get(action.tool)
  if (tool === undefined)
    return settle(ports, action, { kind: 'in-doubt', error: 'its tool is not there any more' }, 'nobody')
  const context = contextOf(ports, action, tool, signal)
  const left = await leftBehind(ports, tool, context)
  if (left !== undefined && (left.kind === 'done' || left.kind === 'failed'))
    return settle(ports, action, left, 'what its process left behind')
  const certainlyNot = left?.kind === 'never-started'
  if (certainlyNot || tool.effect === 'read' || tool.idempotent) return again(ports, attempt, action, signal)
  const found = tool.probe === undefined ? { kind: 'unknown' as const } : await tool.probe(action.input, context)
  if (found.kind === 'done') return settle(ports, action, found, 'its probe')
  if (found.kind === 'failed') return again(ports, attempt, action, signal)
  const error = left?.kind === 'in-doubt' ? left.error : 'its worker died while it was under way'
  return settle(ports, action, { kind: 'in-doubt', error }, 'nobody')
}

async function leftBehind(ports: ActPorts, tool: Tool, context: ToolContext) {
  if (tool.recover === undefined) return undefined
  if (!ports.folders.isThere(context.mark))
    return { kind: 'in-doubt', error: 'what it left behind was removed' } as const
  return guarded(tool, () => tool.recover!(context), context)
}

async function again(ports: ActPorts, attempt: AttemptRef, action: Action, signal: AbortSignal): Promise<Action> {
  await ports.folders.prepare(markOf(action, action.tries + 1))
  const restarted = await ports.store.apply(restartAction, attempt, action)
  if (restarted !== undefined) return performAction(ports, restarted, signal)
  const now = await ports.store.read(findAction, action.id)
  if (now !== undefined && isSettled(now.state)) return now
  throw new Stopped(signal.aborted ? 'cancel-requested' : 'superseded')
}

const settle = (ports: ActPorts, action: Action, outcome: ToolOutcome, by: string) =>
  ports.store.apply(settleAction, action, settlementOf(outcome, by))

function settlementOf(outcome: ToolOutcome, by: string): Settlement {
  if (outcome.kind === 'done') return { state: 'done', result: outcome.result ?? null, by }
  return { state: outcome.kind === 'failed' ? 'failed' : 'in_doubt', error: outcome.error, by }
}

const markOf = (action: Action, tries: number) => `${action.mark}${tries.toString(16).padStart(2, '0')}`

/** Each try has a folder and a mark of its own: the fence of an earlier one stays where it is. */
function contextOf(ports: ActPorts, action: Action, tool: Tool, signal: AbortSignal): ToolContext {
  const mark = markOf(action, action.tries)
  const { id: key, threadId, runId } = action
  const deadline = ports.clock.now() + tool.timeoutMs
  return { signal, clock: ports.clock, key, threadId, runId, mark, folder: ports.folders.path(mark), deadline }
}

/** A tool that throws has said nothing about what it did: for a write that is doubt. */
async function guarded<T>(
  tool: Tool,
  work: (context: ToolContext) => Promise<T>,
  context: ToolContext,
): Promise<T | ToolOutcome> {
  try {
    return await work(context)
  } catch (error) {
    // It may still be running where nobody can see it: neither doubt nor a second try, but later.
    if ((error as { code?: string }).code === 'tools/unreachable') throw error
    const sentence = describeError(error)
    return tool.effect === 'read' ? { kind: 'failed', error: sentence } : { kind: 'in-doubt', error: sentence }
  }
}
