import { listActions } from '../actions/action.ts'
import { awaitedBy, viewAwaited } from '../actions/desk.ts'
import { readStatement, viewStatement } from '../actions/statement.ts'
import { viewAction } from '../actions/view.ts'
import { releaseAction } from '../actions/window.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { runEventsAfter } from '../events/event.ts'
import { cancelRun } from '../runs/cancel.ts'
import { findRun, listRuns } from '../runs/run.ts'
import { readWholeRun, viewEvent, viewRun, viewWholeRun } from '../runs/view.ts'
import type { Desk } from './desk.ts'
import { notThere, theAction, theRun, theThread } from './find.ts'
import { filled, paged } from './page.ts'
import { silenceOf } from './silent.ts'
import { viewOf } from './workspaces.ts'

/** Runs, what happened to them, and the calls of their tools. */

export async function list(desk: Desk, ask: Ask<'runs.list'>): Promise<Answer<'runs.list'>> {
  const { limit = LIMITS.page, after, state, agent, thread } = ask
  const threadId = thread === undefined ? undefined : (await theThread(desk.runtime.store, thread)).id
  if (after !== undefined && (await desk.read(findRun, after as RunId)) === undefined) throw notThere('run', after)
  const filter = { limit, ...filled({ agent, threadId, states: state, after: after as RunId | undefined }) }
  const runs = await desk.read(listRuns, filter)
  return paged(
    runs.map((run) => viewRun(run) as Answer<'runs.list'>['items'][number]),
    limit,
  )
}

export async function show(desk: Desk, { run: given }: Ask<'runs.show'>): Promise<Answer<'runs.show'>> {
  const { id } = await theRun(desk.runtime.store, given)
  const whole = await desk.read(readWholeRun, id)
  if (whole === undefined) throw notThere('run', given)
  const awaited = await desk.read(awaitedBy, id)
  const silent = whole.run.state === 'running' ? await silenceOf(desk, id) : undefined
  return {
    ...viewWholeRun(whole),
    ...(awaited === undefined ? {} : { waitsFor: viewAwaited(awaited) }),
    ...filled({ silent, workspace: whole.run.workspace === null ? undefined : await viewOf(desk, id) }),
  } as Answer<'runs.show'>
}

export async function cancel(desk: Desk, { run, reason }: Ask<'runs.cancel'>): Promise<Answer<'runs.cancel'>> {
  const { id } = await theRun(desk.runtime.store, run)
  const answer = await desk.apply(cancelRun, id, { by: desk.who.by, ...filled({ reason }) })
  if (answer.kind === 'unknown-run') throw notThere('run', run)
  if (answer.kind === 'already-terminal') {
    throw new HoldfastError('runs/already-terminal', `${id} has ended already: ${answer.run.state}`, {
      remedy: 'there is nothing left to cancel',
    })
  }
  return viewRun(answer.run) as Answer<'runs.cancel'>
}

export async function events(desk: Desk, ask: Ask<'runs.events'>): Promise<Answer<'runs.events'>> {
  const { limit = LIMITS.longestPage, after = 0 } = ask
  const { id } = await theRun(desk.runtime.store, ask.run)
  const found = await desk.read(runEventsAfter, id, after, limit)
  const last = found.at(-1)
  const items = found.map(viewEvent) as Answer<'runs.events'>['items']
  return { items, ...(found.length === limit && last !== undefined ? { next: last.seq } : {}) }
}

export async function statement(desk: Desk, { run }: Ask<'runs.statement'>): Promise<Answer<'runs.statement'>> {
  const { id } = await theRun(desk.runtime.store, run)
  const found = await desk.read(readStatement, id)
  if (found === undefined) throw notThere('run', run)
  const workspace = await viewOf(desk, id)
  return workspace === undefined ? viewStatement(found) : { ...viewStatement(found), workspace }
}

export async function listCalls(desk: Desk, ask: Ask<'actions.list'>): Promise<Answer<'actions.list'>> {
  const { limit = LIMITS.page, after, tool, state } = ask
  const { store } = desk.runtime
  const runId = ask.run === undefined ? undefined : (await theRun(store, ask.run)).id
  const threadId = ask.thread === undefined ? undefined : (await theThread(store, ask.thread)).id
  const actions = await desk.read(listActions, { limit, ...filled({ after, tool, states: state, runId, threadId }) })
  return paged(actions.map(viewAction), limit)
}

export async function showCall(desk: Desk, { action }: Ask<'actions.show'>): Promise<Answer<'actions.show'>> {
  return viewAction(await theAction(desk.runtime.store, action))
}

export async function again(
  desk: Desk,
  { action: given, why }: Ask<'actions.again'>,
): Promise<Answer<'actions.again'>> {
  const { id } = await theAction(desk.runtime.store, given)
  const released = await desk.apply(releaseAction, id, { by: desk.who.by, ...filled({ why }) })
  if (released.kind === 'in-doubt')
    throw new HoldfastError('actions/in-doubt', `nobody knows whether ${released.action.id} happened`, {
      remedy: '`holdfast doubts` settles it first',
    })
  if (released.kind !== 'released')
    throw new HoldfastError('actions/not-held', `nothing keeps an identical call of ${id} from being performed`, {
      remedy: 'let the agent make it',
    })
  return viewAction(released.action)
}
