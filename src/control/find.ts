import { actionsByPrefix } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { askedByPrefix, doubtfulByPrefix } from '../actions/desk.ts'
import type { AskedMatter, Matter } from '../actions/desk.ts'
import { HoldfastError } from '../base/errors.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { findRun, runsByPrefix } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { schedulesByName } from '../schedule/schedule.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Store } from '../store/store.ts'
import { findMessage, messagesByPrefix } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { findThread, threadsByPrefix } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import { findWorkspace, workspacesByPrefix } from '../workspace/workspace.ts'
import type { Workspace } from '../workspace/workspace.ts'

/** A run by its id, or by a prefix that only it has; `run_` may be left out. */
export async function theRun(store: Store, given: string): Promise<Run> {
  const exact = await store.read(findRun, given as Run['id'])
  if (exact !== undefined) return exact
  const prefix = given.startsWith('run_') ? given : `run_${given}`
  return onlyOne(await store.read(runsByPrefix, prefix), 'run', given, '`holdfast runs list` shows them')
}

export async function theThread(store: Store, given: string): Promise<Thread> {
  const exact = await store.read(findThread, given as ThreadId)
  if (exact !== undefined) return exact
  return onlyOne(await store.read(threadsByPrefix, given), 'thread', given, '`holdfast threads list` shows them')
}

/** An approval by its id or a prefix; `apr_` may be left out. */
export async function theApproval(store: Store, given: string): Promise<AskedMatter> {
  const prefix = given.startsWith('apr_') ? given : `apr_${given}`
  return onlyOne(await store.read(askedByPrefix, prefix), 'approval', given, '`holdfast approvals list` shows them')
}

/** An action in doubt, or one that was; `act_` may be left out. */
export async function theDoubt(store: Store, given: string): Promise<Matter> {
  const prefix = given.startsWith('act_') ? given : `act_${given}`
  return onlyOne(await store.read(doubtfulByPrefix, prefix), 'doubt', given, '`holdfast doubts list` shows them')
}

/** A schedule or follow-up by its name, its id or a prefix of that; `sch_` may be left out. */
export async function theSchedule(store: Store, given: string): Promise<Schedule> {
  const [named, ...others] = await store.read(schedulesByName, given)
  if (named !== undefined && (named.name === given || named.id === given)) return named
  const found = named === undefined ? await store.read(schedulesByName, `sch_${given}`) : [named, ...others]
  return onlyOne(found, 'schedule', given, '`holdfast schedule list` and `holdfast followup list` show them')
}

export function onlyOne<T>(found: readonly T[], noun: string, given: string, hint: string): T {
  const [first, second] = found
  if (first === undefined || given === '') {
    throw new HoldfastError(`not-found/${noun}`, `there is no ${noun} "${given}"`, { remedy: hint })
  }
  if (second !== undefined) {
    throw new HoldfastError('usage/ambiguous', `several ${noun}s begin with "${given}"`, {
      remedy: 'give more of the id',
    })
  }
  return first
}

/** A message by its id, or by a prefix that only it has; `msg_` may be left out. */
export async function theMessage(store: Store, given: string): Promise<Message> {
  const exact = await store.read(findMessage, given)
  if (exact !== undefined) return exact
  const prefix = given.startsWith('msg_') ? given : `msg_${given}`
  return onlyOne(await store.read(messagesByPrefix, prefix), 'message', given, '`holdfast inbox list` shows them')
}

/** `act_` may be left out. */
export async function theAction(store: Store, given: string): Promise<Action> {
  const prefix = given.startsWith('act_') ? given : `act_${given}`
  const hint = '`holdfast runs statement` shows those of a run'
  return onlyOne(await store.read(actionsByPrefix, prefix), 'action', given, hint)
}

/** The workspace of a run, by the run's id or a prefix of it; `run_` may be left out. */
export async function theWorkspace(store: Store, given: string): Promise<Workspace> {
  const prefix = given.startsWith('run_') ? given : `run_${given}`
  const exact = await store.read(findWorkspace, prefix as RunId)
  const found = exact === undefined ? await store.read(workspacesByPrefix, prefix) : [exact]
  return onlyOne(found, 'workspace', given, '`holdfast workspace list` shows them')
}

export const notThere = (noun: string, given: string) =>
  new HoldfastError(`not-found/${noun}`, `there is no ${noun} "${given}"`, {
    remedy: `\`holdfast ${noun}s list\` shows them`,
  })
