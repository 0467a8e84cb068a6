import { findAction, isSettled } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { doubtAgain } from '../actions/doubt.ts'
import type { PolicyRule } from '../actions/policy.ts'
import { restartAction, settleAction, startAction, whyNotAgain, whyRefused } from '../actions/perform.ts'
import type { Now, Settlement } from '../actions/perform.ts'
import type { Clock } from '../base/clock.ts'
import type { RunId } from '../base/ids.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import { refuseMissing } from '../secrets/codec.ts'
import type { Store } from '../store/store.ts'
import { keepUntilStored } from './keep.ts'
import type { Tool, ToolContext, ToolOutcome } from './ports.ts'
import { versionOf } from './version.ts'

export interface ActPorts {
  readonly store: Store
  readonly clock: Clock
  readonly tools: ReadonlyMap<string, Tool>
  /** Where a try of an action leaves what must outlive this process. */
  readonly folders: ActionFolders
  readonly onAction: (action: Action) => void
  /** Whose actions they are, and the rules of the configuration. */
  readonly agent: string
  readonly policy: readonly PolicyRule[]
  /** How long a person has to answer. */
  readonly approvalMs?: number
  /** Makes sure that no worker which lost this run can still act for it; or says which one can. */
  readonly whoCouldStill?: (runId: RunId) => Promise<string | undefined>
  /** Whether a worker that lost this run was on a machine that cannot be looked at from here. */
  readonly wasElsewhere?: (runId: RunId) => Promise<boolean>
}

/** `home` is that of the worker which began the try, another's perhaps. */
export interface ActionFolders {
  path(mark: string, home: string | null): string
  /** Made before the intent is recorded: one that is missing later was removed, and proves nothing. */
  prepare(mark: string): Promise<void>
  isThere(mark: string, home: string | null): boolean
}

/** The run may not go on: it was cancelled, or another worker has it. */
export class Stopped extends Error {
  readonly why: 'cancel-requested' | 'superseded'
  constructor(why: 'cancel-requested' | 'superseded') {
    super(why)
    this.why = why
  }
}

/** A tool met a limit of the run itself: the call is answered, and the run ends. */
export class LimitReached extends Error {}

/** One action on its way to its end, by whom, and until when. */
interface Doing {
  readonly ports: ActPorts
  readonly attempt: AttemptRef
  readonly action: Action
  readonly signal: AbortSignal
  /** What an earlier try may have done. A second one that did not even begin says nothing about the first. */
  readonly doubt?: string | undefined
}

/**
 * Brings every action of one reply to its end: reads side by side, writes one after the other in the model's order. One
 * that fails does not stop the others. What had started before a crash is first looked up, and ended also where nothing more may
 * begin.
 */
export async function settleActions(
  ports: ActPorts,
  attempt: AttemptRef,
  actions: readonly Action[],
  signal: AbortSignal,
): Promise<Action[]> {
  const settled = new Map<string, Action>()
  const settle = async (action: Action) => {
    const end = await settleOne({ ports, attempt, action, signal })
    settled.set(action.id, end)
    ports.onAction(end)
  }
  try {
    const reads = actions.filter(({ effect }) => effect === 'read')
    for (let next = 0; next < reads.length; next += LIMITS.readsTogether) {
      await allOver(reads.slice(next, next + LIMITS.readsTogether).map(settle))
    }
    for (const action of actions.filter(({ effect }) => effect === 'write')) await settle(action)
  } catch (error) {
    const begun = actions.filter(({ id, state }) => state === 'started' && !settled.has(id))
    if (error instanceof Stopped && error.why === 'cancel-requested') for (const action of begun) await settle(action)
    throw error
  }
  return actions.map((action) => settled.get(action.id) ?? action)
}

/** One that may not go on does not leave the others behind: what has started is over before anybody hears of it. */
async function allOver(work: readonly Promise<void>[]): Promise<void> {
  const ended = await Promise.allSettled(work)
  const surprise = ended.find((each) => each.status === 'rejected' && !(each.reason instanceof Stopped))
  const broken = surprise ?? ended.find((each) => each.status === 'rejected')
  if (broken?.status === 'rejected') throw broken.reason
}

async function settleOne(doing: Doing): Promise<Action> {
  const { ports, attempt, action, signal } = doing
  if (isSettled(action.state) || action.state === 'waiting') return action
  // Not by a worker that has lost its lease: to look ends what is under way, and its taker does that.
  if (action.state === 'started' && signal.reason !== 'lease-lost') return recoverAction(doing)
  // Told to stop, by the turn's time or a person: what has not begun is withdrawn with the run.
  if (signal.aborted) throw new Stopped('cancel-requested')
  const tool = ports.tools.get(action.tool)
  const rival = action.tries === 0 ? undefined : await couldStill(ports, tool, action)
  if (rival !== undefined) return ports.store.apply(doubtAgain, action, rival)
  // A person has it run again by what was seen then. Who could still do it is gone by now, and may have done it before that.
  const found =
    action.tries === 0 || tool === undefined ? NO_ANSWER : await asked(tool, action.input, contextOf(doing, tool))
  if (found.kind === 'done') return settle(doing, found, 'its probe')
  if (signal.aborted) throw new Stopped('cancel-requested')
  await ports.folders.prepare(markOf(action, action.tries + 1))
  const start = await ports.store.apply(startAction, attempt, action.id, nowOf(ports, tool))
  if (start.kind === 'refused') throw new Stopped(start.why)
  if (start.kind === 'settled') return start.action
  ports.onAction(start.action)
  return performAction({ ...doing, action: start.action })
}

const nowOf = ({ agent, policy, approvalMs }: ActPorts, tool: Tool | undefined): Now => ({
  agent,
  policy,
  version: versionOf(tool),
  ...(tool?.once === undefined ? {} : { once: tool.once }),
  ...(approvalMs === undefined ? {} : { approvalMs }),
})

async function couldStill(ports: ActPorts, tool: Tool | undefined, { id, runId }: Action): Promise<string | undefined> {
  if ((await tool?.goesOn?.(id)) === true) return 'this very process had begun it, and has not ended it'
  return ports.whoCouldStill?.(runId)
}

async function performAction(doing: Doing): Promise<Action> {
  const { ports, action, signal, doubt } = doing
  const tool = ports.tools.get(action.tool)
  if (tool === undefined)
    return settle(doing, { kind: 'failed', error: `there is no tool ${action.tool} any more` }, 'nobody')
  const context = contextOf(doing, tool)
  const outcome = await guarded(action, () => dispatch(tool, action.input, context), context)
  if (outcome.kind === 'failed' && outcome.endsRun === true) {
    await settle(doing, outcome, 'its tool')
    throw new LimitReached(outcome.error)
  }
  // Once: a second try that is cut off as well is no accident any more.
  if (doubt === undefined && mayRepeat(tool, action, outcome) && !signal.aborted)
    return repeat({ ...doing, doubt: outcome.error }, tool)
  if (doubt === undefined || outcome.kind !== 'failed' || outcome.unbegun !== true)
    return settleTry(doing, tool, outcome, context)
  return settle(doing, { kind: 'in-doubt', error: `${doubt}; another try: ${outcome.error}` }, 'nobody')
}

type Doubt = Extract<ToolOutcome, { kind: 'in-doubt' }>

/**
 * It honours its key: what was cut off in it is done again by that. Not beside a try that may still go on: one that looks for its key and
 * then acts would find nothing yet, and act twice.
 */
const mayRepeat = (tool: Tool, { effect }: Action, outcome: ToolOutcome): outcome is Doubt =>
  tool.idempotent && effect === 'write' && outcome.kind === 'in-doubt' && outcome.over === true

/** What the first try may have done is a fact that must not be lost: if there can be no second one, the doubt is kept. */
async function repeat(doing: Doing, tool: Tool): Promise<Action> {
  const { ports, action, doubt } = doing
  const found = await asked(tool, action.input, contextOf(doing, tool))
  if (found.kind === 'done') return settle(doing, found, 'its probe')
  const trouble = await ports.folders.prepare(markOf(action, action.tries + 1)).then(() => undefined, describeError)
  if (trouble === undefined) return restarted(doing)
  return settle(doing, { kind: 'in-doubt', error: `${doubt}; it could not be tried again: ${trouble}` }, 'nobody')
}

/** With its exact bytes, or not at all. */
function dispatch(tool: Tool, input: unknown, context: ToolContext): Promise<ToolOutcome> {
  try {
    refuseMissing(input)
  } catch (error) {
    return Promise.resolve({ kind: 'failed', error: describeError(error), unbegun: true })
  }
  return tool.perform(input, context)
}

/** What was cut off by its own time is asked for at once; after a stop of the turn there is no time for questions. */
async function settleTry(doing: Doing, tool: Tool, outcome: ToolOutcome, context: ToolContext): Promise<Action> {
  const { action } = doing
  if (outcome.kind === 'done') return settle(doing, outcome, 'its tool')
  // The taker performs it again; a failure that it never had would be told to the model, a doubt to a person.
  if (context.signal.reason === 'lease-lost' && (action.effect === 'read' || mayRepeat(tool, action, outcome)))
    throw new Stopped('cancel-requested')
  // A read leaves nothing behind that anybody could doubt.
  if (action.effect === 'read') return settle(doing, { kind: 'failed', error: outcome.error }, 'its tool')
  const mayAsk = outcome.kind === 'in-doubt' && !context.signal.aborted
  // Its own time is over, so the question gets another.
  const found = mayAsk ? await asked(tool, action.input, contextOf(doing, tool)) : NO_ANSWER
  if (found.kind !== 'unknown') return settle(doing, found, 'its probe')
  return settle(doing, { ...outcome, error: `${outcome.error}${found.said}` }, 'its tool')
}

/**
 * The worker died after this action's intent was recorded. Evidence first: what the tool's own process left behind, then
 * the tool's idempotency, then its probe. Without any, a write stays in doubt; a read is simply performed again.
 */
async function recoverAction(doing: Doing): Promise<Action> {
  const { ports, action } = doing
  const tool = ports.tools.get(action.tool)
  if (tool === undefined) return settle(doing, { kind: 'in-doubt', error: 'its tool is not there any more' }, 'nobody')
  const context = contextOf(doing, tool)
  const { isSeen, left } = await leftBehind(doing, tool, context)
  if (left !== undefined && (left.kind === 'done' || left.kind === 'failed'))
    return settle(doing, left, 'what its process left behind')
  if (left?.kind === 'never-started' || action.effect === 'read') return again(doing)
  const doubt = left?.error ?? 'its worker died while it was under way'
  const mayBeOver = left?.over !== false
  if (tool.idempotent && mayBeOver && (await tool.goesOn?.(action.id)) !== true) return again({ ...doing, doubt })
  // Whoever could still do it is ended first: before that, "not done" is not an answer but a moment, a person's too.
  const rival = await couldStill(ports, tool, action)
  const found = await asked(tool, action.input, context)
  if (found.kind === 'done') return settle(doing, found, 'its probe')
  // Not done so far; where it cannot be seen, it may be under way, and still be done.
  if (found.kind === 'failed' && isSeen && mayBeOver && rival === undefined) return again(doing)
  const said = found.kind === 'unknown' ? found.said : '; its probe says that it is not done, but it may be under way'
  const still = rival === undefined ? '' : `; ${rival}`
  return settle(doing, { kind: 'in-doubt', error: `${doubt}${said}${still}` }, 'nobody')
}

/** `said`: what a person who has to decide is told of it. */
interface NoAnswer {
  readonly kind: 'unknown'
  readonly said: string
}

const NO_ANSWER: NoAnswer = { kind: 'unknown', said: '' }

/** A probe that breaks has no answer: the doubt stays. */
async function asked(tool: Tool, input: unknown, context: ToolContext): Promise<ToolOutcome | NoAnswer> {
  if (tool.probe === undefined) return NO_ANSWER
  try {
    refuseMissing(input)
    const answer = await tool.probe(input, context)
    return answer.kind === 'unknown' ? { ...answer, said: '; its probe does not know' } : answer
  } catch (error) {
    return { ...NO_ANSWER, said: `; its probe failed: ${describeError(error)}` }
  }
}

const REMOVED: Doubt = { kind: 'in-doubt', error: 'what it left behind was removed, or is on another machine' }

async function leftBehind({ ports, action }: Doing, tool: Tool, context: ToolContext) {
  const isThere = ports.folders.isThere(context.mark, action.home)
  if (tool.recover === undefined) return { isSeen: isThere, left: undefined }
  const left = isThere ? await guarded(action, () => tool.recover!(context), context) : REMOVED
  // Made here for a start that was not recorded; then it was begun on another machine, where the path is the same.
  const isUnused = left.kind === 'never-started' && (await ports.wasElsewhere?.(action.runId)) === true
  return isUnused ? { isSeen: false, left: REMOVED } : { isSeen: isThere, left }
}

/** Once more, by the same key. Where the run may not go on, what is known of the earlier try is all there will be. */
async function again(doing: Doing): Promise<Action> {
  const { ports, action } = doing
  await ports.folders.prepare(markOf(action, action.tries + 1))
  return restarted(doing)
}

async function restarted(doing: Doing): Promise<Action> {
  const { ports, attempt, action, signal } = doing
  const { store, clock } = ports
  const current = nowOf(ports, ports.tools.get(action.tool))
  const next = signal.aborted
    ? undefined
    : await keepUntilStored(clock, () => store.apply(restartAction, attempt, action, current))
  if (next !== undefined) return performAction({ ...doing, action: next })
  const { now, why, denied } = await keepUntilStored(clock, async () => ({
    now: (await store.read(findAction, action.id)) ?? action,
    why: await store.read(whyRefused, attempt),
    denied: await store.read(whyNotAgain, action, current),
  }))
  if (isSettled(now.state)) return now
  if (signal.reason === 'lease-lost') throw new Stopped('cancel-requested')
  if (why === 'superseded') {
    if (!signal.aborted) throw new Stopped('superseded')
    return settleUndone(doing, denied ?? stopWords(signal))
  }
  // Stored after all when nobody was told so: under our fence nobody else can have begun this try.
  if (now.tries > action.tries && !signal.aborted) return performAction({ ...doing, action: now })
  return settleUndone({ ...doing, action: now }, denied ?? stopWords(signal))
}

/** There is no second try: what is known of the first is all there is. */
const settleUndone = (doing: Doing, why: string) =>
  doing.doubt === undefined
    ? settle(doing, { kind: 'failed', error: `${why} before it was done` }, 'nobody')
    : settle(doing, { kind: 'in-doubt', error: `${doing.doubt}; it was not tried again: ${why}` }, 'nobody')

const stopWords = ({ reason }: AbortSignal) => (typeof reason === 'string' ? reason : 'cancelled')

const settle = ({ ports, action }: Doing, outcome: ToolOutcome, by: string) =>
  keepUntilStored(ports.clock, () => ports.store.apply(settleAction, action, settlementOf(outcome, by)))

function settlementOf(outcome: ToolOutcome, by: string): Settlement {
  if (outcome.kind === 'done') return { state: 'done', result: outcome.result ?? null, by }
  return { state: outcome.kind === 'failed' ? 'failed' : 'in_doubt', error: outcome.error, by }
}

const markOf = (action: Action, tries: number) => `${action.mark}${tries.toString(16).padStart(2, '0')}`

/** Each try has a folder and a mark of its own: the fence of an earlier one stays where it is. */
function contextOf({ ports, attempt, action, signal }: Doing, tool: Tool): ToolContext {
  const mark = markOf(action, action.tries)
  const { id: key, threadId, runId } = action
  const deadline = ports.clock.now() + tool.timeoutMs
  return {
    signal,
    clock: ports.clock,
    key,
    threadId,
    runId,
    mark,
    fence: attempt.fence,
    folder: ports.folders.path(mark, action.home),
    deadline,
  }
}

/** A tool that throws has said nothing about what it did: for a write that is doubt. */
async function guarded<T>(
  { effect }: Action,
  work: (context: ToolContext) => Promise<T>,
  context: ToolContext,
): Promise<T | ToolOutcome> {
  try {
    return await work(context)
  } catch (error) {
    // It may still be running where nobody can see it: neither doubt nor a second try, but later.
    if ((error as { code?: string }).code === 'tools/unreachable') throw error
    const sentence = describeError(error)
    return effect === 'read' ? { kind: 'failed', error: sentence } : { kind: 'in-doubt', error: sentence, over: false }
  }
}
