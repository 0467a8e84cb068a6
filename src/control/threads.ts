import { actionsBetween } from '../actions/action.ts'
import { viewActionBriefly } from '../actions/view.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { addressLetter, viewSent } from '../runs/address.ts'
import type { Recipient } from '../runs/address.ts'
import { cancelRun } from '../runs/cancel.ts'
import { listRuns } from '../runs/run.ts'
import { sendMessage } from '../runs/send.ts'
import { readWholeThread, viewWholeThread } from '../runs/thread-view.ts'
import { viewStep } from '../runs/view.ts'
import { knownAgents } from '../runs/worker.ts'
import type { Runtime } from '../runtime.ts'
import { LIVE_SCHEDULES, listSchedules } from '../schedule/schedule.ts'
import { viewSchedule } from '../schedule/view.ts'
import { treeOf, viewBranch } from '../sessions/branch.ts'
import { sessionEnded } from '../sessions/events.ts'
import { sessionsOfThread } from '../sessions/session.ts'
import { readThreadPage, viewListedThread } from '../sessions/thread-page.ts'
import { threadFamily } from '../sessions/tree.ts'
import { entriesBefore } from '../threads/conversation.ts'
import { removeThread, reopenThread, stopThread } from '../threads/remove.ts'
import { findThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import { viewThread } from '../threads/view.ts'
import type { Desk } from './desk.ts'
import { notThere, theThread } from './find.ts'
import { filled, paged } from './page.ts'

/** Conversations: what was said in them, who they started, and how they are stopped. */

/** With the caller's right to it checked. */
export async function ownThread(desk: Desk, given: string): Promise<Thread> {
  const thread = await theThread(desk.runtime.store, given)
  desk.ownOnly(thread.id)
  return thread
}

export async function list(desk: Desk, ask: Ask<'threads.list'>): Promise<Answer<'threads.list'>> {
  const { limit = LIMITS.page } = ask
  const after = ask.after as ThreadId | undefined
  if (after !== undefined && (await desk.read(findThread, after)) === undefined) throw notThere('thread', after)
  const { threads, seq } = await desk.read(readThreadPage, limit, after)
  return { ...paged(threads.map(viewListedThread), limit), seq }
}

export async function show(desk: Desk, { thread: given }: Ask<'threads.show'>): Promise<Answer<'threads.show'>> {
  const { id } = await ownThread(desk, given)
  const whole = await desk.read(readWholeThread, id, LIMITS.threadShown)
  const branch = await treeBelow(desk, id)
  if (whole === undefined) throw notThere('thread', given)
  const coming = await desk.read(listSchedules, { targetThread: id, states: LIVE_SCHEDULES, limit: LIMITS.page })
  return {
    ...viewWholeThread(whole),
    ...branch,
    schedules: coming.map(viewSchedule),
  } as unknown as Answer<'threads.show'>
}

async function treeBelow(desk: Desk, id: ThreadId): Promise<Answer<'threads.tree'>> {
  const branch = treeOf(id, await desk.read(threadFamily, id, LIMITS.threadShown))
  if (branch === undefined) throw notThere('thread', id)
  return viewBranch(branch) as unknown as Answer<'threads.tree'>
}

export async function tree(desk: Desk, { thread }: Ask<'threads.tree'>): Promise<Answer<'threads.tree'>> {
  return treeBelow(desk, (await theThread(desk.runtime.store, thread)).id)
}

/** Oldest first inside of a page, pages from the newest on: as a reader scrolls up. */
export async function conversation(
  desk: Desk,
  { thread: given, limit = LIMITS.page, before }: Ask<'threads.conversation'>,
): Promise<Answer<'threads.conversation'>> {
  const { id, generation } = await ownThread(desk, given)
  const entries = await desk.read(entriesBefore, id, generation, before, limit)
  const [first, last] = [entries[0], entries.at(-1)]
  const actions = first === undefined ? [] : await desk.read(actionsBetween, id, first.seq, last?.seq ?? first.seq)
  return {
    items: entries.map(viewStep),
    actions: actions.map(viewActionBriefly),
    ...(entries.length === limit && first !== undefined ? { next: first.seq } : {}),
  }
}

const alreadyRemoved = ({ id }: Thread) =>
  new HoldfastError('threads/already-removed', `${id} has been removed already`, {
    remedy: 'its name may be used for a new thread',
  })

/** Stopped first, so that nothing new begins while what is under way is ended. */
export async function stop(desk: Desk, { thread: given }: Ask<'threads.stop'>): Promise<Answer<'threads.stop'>> {
  const found = await theThread(desk.runtime.store, given)
  if (found.state === 'removed') throw alreadyRemoved(found)
  const thread = (await desk.apply(stopThread, found.id)) ?? found
  return { ...viewThread(thread), ...(await cancelAll(desk, found)) }
}

/** More than one thread can have under way. */
const MOST_RUNS = 1_000

/** `observed` are turns of a client, which is not ours to stop. */
async function cancelAll(desk: Desk, { id }: Thread): Promise<{ cancelled: string[]; observed: number }> {
  const states = ['queued', 'running', 'parked'] as const
  const active = await desk.read(listRuns, { states, threadId: id, limit: MOST_RUNS })
  const own = active.filter(({ request }) => request.kind !== 'observed')
  const cancelled: string[] = []
  for (const run of own) {
    const request = { by: desk.who.by, reason: `its thread ${id} was stopped` }
    const answer = await desk.apply(cancelRun, run.id, request)
    if (answer.kind === 'cancelled' || answer.kind === 'requested') cancelled.push(run.id)
  }
  return { cancelled, observed: active.length - own.length }
}

export async function resume(desk: Desk, { thread: given }: Ask<'threads.resume'>): Promise<Answer<'threads.resume'>> {
  const found = await theThread(desk.runtime.store, given)
  if (found.state === 'removed') throw alreadyRemoved(found)
  await desk.apply(reopenThread, found.id)
  return viewThread(await theThread(desk.runtime.store, found.id))
}

export async function remove(
  desk: Desk,
  { thread: given, force }: Ask<'threads.remove'>,
): Promise<Answer<'threads.remove'>> {
  const found = await theThread(desk.runtime.store, given)
  if (force === true) await endEverything(desk, found)
  const removed = await desk.apply(removeThread, found.id)
  if (removed.kind === 'busy') {
    throw new HoldfastError('threads/busy', `${found.id} has ${removed.runs} runs under way`, {
      remedy: 'wait for them, or use --force, which cancels them first',
      ...(force === true ? { retry: { afterMs: 1_000 } } : {}),
    })
  }
  if (removed.kind !== 'removed') throw alreadyRemoved(found)
  return { ...viewThread(removed.thread), deadLetters: removed.deadLetters }
}

async function endEverything(desk: Desk, found: Thread): Promise<void> {
  if (found.state === 'removed') throw alreadyRemoved(found)
  await desk.apply(stopThread, found.id)
  await cancelAll(desk, found)
  for (const { client, sessionId, endedAt } of await desk.read(sessionsOfThread, found.id)) {
    if (endedAt === null) await desk.apply(sessionEnded, { client, sessionId }, 'its thread was removed')
  }
}

/** Answered when it is stored: whoever has the answer need not send it again. */
export async function send(desk: Desk, ask: Ask<'messages.send'>): Promise<Answer<'messages.send'>> {
  const { agent, threadId, text = '', key, timeoutMs } = ask
  const speaker = ask.from as ThreadId | undefined
  if (speaker !== undefined) desk.ownOnly(speaker)
  const to = await recipientOf(desk, agent, threadId)
  const sending = addressLetter(await officeFor(desk, to), { to, text, ...filled({ key }) })
  // What a thread sends is labelled as its own; to itself it speaks as anybody.
  const own = speaker ?? desk.who.threadId
  const from = own !== undefined && own !== sending.threadId ? { from: own } : {}
  return viewSent(await desk.apply(sendMessage, { ...sending, ...from, ...filled({ timeoutMs }) }), text)
}

/** A new thread may be one of an agent that only a daemon beside us has: whoever sends need not have its configuration. */
async function officeFor(desk: Desk, to: Recipient): Promise<Pick<Runtime, 'agents' | 'random'>> {
  const { agents, random } = desk.runtime
  if (!('agent' in to) || agents.includes(to.agent)) return desk.runtime
  const seen = (await desk.read(knownAgents)).map(({ agent }) => agent).filter((name) => !name.includes(':'))
  return { agents: [...new Set([...agents, ...seen])], random }
}

async function recipientOf(desk: Desk, agent?: string, threadId?: string): Promise<Recipient> {
  if (agent !== undefined && threadId === undefined) return { agent }
  if (threadId !== undefined && agent === undefined) return { thread: await theThread(desk.runtime.store, threadId) }
  throw new HoldfastError('usage/request', 'it is not clear who gets it', {
    remedy: 'give either agent, for a new thread, or threadId',
  })
}
