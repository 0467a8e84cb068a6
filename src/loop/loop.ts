import { failuresBefore } from '../actions/propose.ts'
import { actionsOfEntry } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { describeError } from '../base/errors.ts'
import { isUndecided, parkForDecision } from '../actions/await.ts'
import { rulesInForce } from '../actions/rule.ts'
import { LIMITS } from '../base/limits.ts'
import { mustWait, openChildren, parkForChildren } from '../runs/children.ts'
import type { Child } from '../runs/children.ts'
import type { Claim } from '../runs/claim.ts'
import { recordTurn } from '../runs/turn.ts'
import type { Transition } from '../store/transition.ts'
import { textsOf } from '../threads/delivery.ts'
import { pendingMessages } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { LimitReached, Stopped, settleActions } from './act.ts'
import { compact, isTooLong } from './compact.ts'
import { overLimit, spentOf, startCourse, superseded } from './course.ts'
import type { Course, LoopEnd, LoopPorts } from './course.ts'
import { keepUntilStored } from './keep.ts'
import { limitReached } from './limits.ts'
import type { Asked } from './ports.ts'
import { kept, noteOn, proposalFor, readable } from './reply.ts'
import { readSession } from './session.ts'
import { NO_USAGE } from './usage.ts'

export type { LoopEnd, LoopEvent, LoopPorts } from './course.ts'

/**
 * The agent's turns, once:
 *
 *   messages ─▶ model ─▶ reply recorded, messages consumed ─▶ actions: intent ─▶ effect ─▶ outcome ─▶ model ─▶ …
 *
 * It begins with what is recorded, so a run that was cut off goes on where it was: no reply that was recorded is asked
 * for again, no action that was settled is performed again, and what was under way is looked up first. Limits count what is
 * recorded, so they hold over every attempt.
 */
export async function runAgent(ports: LoopPorts, claim: Claim, signal: AbortSignal): Promise<LoopEnd> {
  const session = await ports.store.read(readSession, claim.run)
  const course = startCourse(ports, claim, session, signal)
  try {
    for (;;) {
      const end = (await settleOpen(course)) ?? (await takeTurn(course))
      if (end !== undefined) return end
    }
  } catch (error) {
    if (error instanceof Stopped) return { kind: 'stopped', why: error.why }
    if (error instanceof LimitReached) return overLimit(course, error.message)
    throw error
  }
}

/** Settles what the last reply wants done. Of a reply that went over a limit nothing more is begun. */
async function settleOpen(course: Course): Promise<LoopEnd | undefined> {
  const { ports, attempt, session, signal, limits } = course
  const { open } = session
  if (open.length === 0) return undefined
  const over = limitReached(limits, spentOf(course))
  const begun = over === undefined ? open : open.filter(({ state }) => state === 'started')
  const settled = await settleActions(ports, attempt, begun, signal)
  if (over !== undefined) return overLimit(course, over)
  const undecided = settled.filter(
    (action) => isUndecided(action) && !(action.state === 'in_doubt' && ports.doubts === 'tell'),
  )
  if (undecided.length > 0) return waitForDecision(course, undecided)
  session.open = []
  session.answer(settled)
  return insistence(course, settled)
}

/** Nothing is kept of a run that waits for a person: whoever comes next reads what was decided. */
async function waitForDecision(course: Course, undecided: readonly Action[]): Promise<LoopEnd | undefined> {
  const { ports, attempt, session } = course
  await ports.aboutToWait?.()
  const parked = await ports.store.apply(parkForDecision, attempt, undecided)
  if (parked.kind === 'parked') return { kind: 'left' }
  if (parked.kind === 'refused') return { kind: 'stopped', why: 'cancel-requested' }
  const [some] = undecided
  session.open = some === undefined ? [] : await ports.store.read(actionsOfEntry, some.entrySeq)
  return settleOpen(course)
}

/** A call that has failed as often as it may is answered with that; a model that makes it once more goes in circles. */
async function insistence(course: Course, settled: readonly Action[]): Promise<LoopEnd | undefined> {
  // Not for what an earlier run on this thread left behind: it has had its end for that.
  const mine = settled.filter(({ runId, state }) => runId === course.attempt.runId && state === 'failed')
  for (const action of mine) {
    const { count } = await course.ports.store.read(failuresBefore, action)
    if (count > LIMITS.sameFailures)
      return overLimit(course, `it has made the same call of ${action.tool} ${count + 1} times, which failed each time`)
  }
  return undefined
}

/** What a turn begins with: what is in the inbox, and who is still at work for this run. */
function* lookAround(run: Claim['run']): Transition<Surroundings> {
  const pending = yield* pendingMessages.single(run.threadId, LIMITS.messagesPerTurn)
  return { pending, shown: yield* textsOf(pending), children: yield* openChildren.single(run.id) }
}

interface Surroundings {
  readonly pending: readonly Message[]
  readonly shown: Shown
  readonly children: readonly Child[]
}

async function takeTurn(course: Course): Promise<LoopEnd | undefined> {
  const { ports, attempt, session, signal, limits } = course
  if (signal.aborted) return { kind: 'stopped', why: 'cancel-requested' }
  const stuck = noUsableReply(course)
  if (stuck !== undefined) return stuck
  const { owesReply } = session
  const { pending, shown, children } = await ports.store.read(lookAround, session.run)
  if (mustWait({ pending, children, owesReply })) {
    await ports.aboutToWait?.()
    const waiting = await ports.store.apply(parkForChildren, attempt, owesReply)
    if (waiting.kind === 'parked') return { kind: 'left' }
    return waiting.kind === 'refused' ? { kind: 'stopped', why: 'cancel-requested' } : takeTurn(course)
  }
  if (!owesReply && pending.length === 0) {
    // A run that was never asked anything has said nothing: the last words are another run's.
    const text = session.turns === 0 ? '' : session.lastText
    return { kind: 'finished', outcome: { state: 'succeeded', result: { text }, summary: text } }
  }
  const over = limitReached(limits, spentOf(course))
  if (over !== undefined) return overLimit(course, over)
  return (await makeRoom(course, shown)) ?? converse(course, shown)
}

/** Replies in a row that were of no use: cut off as often as they may be, or empty again. */
function noUsableReply(course: Course): LoopEnd | undefined {
  const { session, limits } = course
  if (session.truncated >= limits.truncatedReplies)
    return overLimit(course, `${session.truncated} replies in a row were cut off by the model's own length limit`)
  if (session.empty < LIMITS.emptyReplies) return undefined
  return {
    kind: 'finished',
    outcome: { state: 'failed', code: 'model', error: 'the model answered with nothing, twice' },
  }
}

type Shown = readonly { readonly messageId: string; readonly text: string }[]

/** A conversation that would outgrow the model's window is compacted first, and that is paid for as well. */
async function makeRoom(course: Course, shown: Shown): Promise<LoopEnd | undefined> {
  const characters = shown.reduce((total, { text }) => total + text.length, 0)
  if (!isTooLong(course, characters)) return undefined
  const compaction = await compact(course, NO_USAGE)
  if (compaction.kind === 'ended') return compaction.end
  const over = limitReached(course.limits, spentOf(course))
  return over === undefined ? undefined : overLimit(course, over)
}

async function converse(course: Course, shown: Shown): Promise<LoopEnd | undefined> {
  const asked = await ask(course, shown)
  if (asked.kind === 'replied') return record(course, shown, asked)
  if (asked.kind !== 'failed' || asked.tooLong !== true) return withoutReply(asked, shown)
  // The estimate was wrong: the provider's own word counts, and once.
  const compaction = await compact(course, asked.spent)
  if (compaction.kind === 'ended') return compaction.end
  if (compaction.kind === 'nothing') return withoutReply(asked, shown)
  const again = await ask(course, shown)
  return again.kind === 'replied' ? record(course, shown, again) : withoutReply(again, shown)
}

function ask({ ports, session, tools, signal }: Course, shown: Shown): Promise<Asked> {
  const request = {
    system: ports.system,
    messages: [...session.messages, ...shown.map(({ text }) => ({ role: 'user' as const, text }))],
    tools,
    replies: session.replies,
    purpose: 'turn' as const,
    threadId: session.run.threadId,
  }
  return ports.ask(request, {
    signal,
    onText: (delta) => ports.emit({ kind: 'text', delta }),
    onRetry: ({ error, waitMs }) => ports.emit({ kind: 'retry', error: describeError(error), waitMs }),
  })
}

/** Recorded before anything of it is acted on; what it cost is on the bill with it, whatever comes of it. */
async function record(
  course: Course,
  shown: Shown,
  { reply: said, spent }: Extract<Asked, { kind: 'replied' }>,
): Promise<LoopEnd | undefined> {
  const { ports, attempt, session, limits } = course
  const reply = readable(said)
  if (reply.finish === 'refusal')
    return withoutReply({ kind: 'failed', code: 'model', error: 'the model refused to answer', spent }, shown)
  const note = noteOn(reply, {
    empty: session.empty + 1 < LIMITS.emptyReplies,
    truncated: session.truncated + 1 < limits.truncatedReplies,
  })
  const rules = reply.toolCalls.length === 0 ? [] : await ports.store.read(rulesInForce)
  const thread = session.run.threadId
  const turn = {
    generation: session.generation,
    shown,
    reply: kept(reply),
    actions: reply.toolCalls.map((call) => proposalFor(ports, call, reply.finish, { rules, thread })),
    usage: spent,
    ...(note === undefined ? {} : { note }),
  }
  const store = () => ports.store.apply(recordTurn, attempt, turn)
  const recorded = await keepUntilStored(ports.clock, store, { twice: false })
  if (recorded.kind === 'superseded') return superseded(course, { text: reply.text, usage: spent })
  if (recorded.kind === 'changed') {
    session.run = recorded.run
    return undefined
  }
  for (const entry of recorded.entries) session.add(entry)
  session.run = recorded.run
  session.open = recorded.actions
  ports.emit({ kind: 'step', text: reply.text, toolCalls: reply.toolCalls })
  return undefined
}

/** What a call cost is on the bill whatever came of it; the end of the run or of its stay carries it there. */
function withoutReply(asked: Exclude<Asked, { kind: 'replied' }>, shown: Shown): LoopEnd {
  const { spent } = asked
  const taken = shown.map(({ messageId }) => messageId)
  if (asked.kind === 'park') return { kind: 'parked', until: asked.until, reason: asked.reason, spent }
  if (asked.kind === 'cancelled') return { kind: 'stopped', why: 'cancel-requested', spent, taken }
  return { kind: 'finished', outcome: { state: 'failed', code: asked.code, error: asked.error, usage: spent, taken } }
}
