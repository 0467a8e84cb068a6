import type { ActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { first, one, run } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { actionRow, findAction } from './action.ts'
import type { Action } from './action.ts'

/** `once` across runs: an identical call of the thread or the agent is the same action for this long after it began. */
export interface OnceWindow {
  readonly per: 'thread' | 'agent'
  readonly withinMs: number
}

const scopeOf = ({ threadId }: Action, agent: string, { per }: OnceWindow) =>
  per === 'thread' ? `thread:${threadId}` : `agent:${agent}`

/** What is under way counts however long it takes; what was done, or may have been, counts as long as the window says. */
const stillCounts = ({ withinMs }: OnceWindow): Sql =>
  sql`(a.state = 'started' or (a.state in ('done', 'in_doubt') and a.started_at > ${now} - ${withinMs}))`

/** The action that an identical call would be answered from, or that a person said may be done once more. */
export function* findInWindow(action: Action, agent: string, window: OnceWindow): Transition<Action | undefined> {
  return yield* first(
    actionRow,
    sql`select a.* from once_marks m join actions a on a.id = m.action_id
      where m.scope = ${scopeOf(action, agent, window)} and m.signature = ${action.signature} and a.id <> ${action.id}
        and ${stillCounts(window)}`,
  )
}

const markRow = row({ actionId: text<ActionId>() })

export type Mark =
  /** It may begin. `released`: it was done before, and a person said that it may be done once more. */
  { readonly kind: 'mine'; readonly released?: Action } | { readonly kind: 'taken'; readonly by: Action }

/**
 * Takes the one mark of its scope and signature. Who comes second waits for the row, and then sees what became of the
 * first. Two that share a commit see each other's statements as they go: so the mark is taken from another only while that
 * has not begun, and an action begins only while the mark is its own (`marked`).
 */
export function* takeMark(action: Action, agent: string, window: OnceWindow): Transition<Mark> {
  const [scope, { id, signature }] = [scopeOf(action, agent, window), action]
  const held = yield* one(
    markRow,
    sql`insert into once_marks (scope, signature, action_id, ends_at)
      values (${scope}, ${signature}, ${id}, ${now} + ${window.withinMs})
      on conflict (scope, signature) do update set
        ends_at = case when once_marks.action_id = excluded.action_id then excluded.ends_at else once_marks.ends_at end
      returning action_id`,
  )
  if (held.actionId === id) return { kind: 'mine' }
  const released = yield* findInWindow(action, agent, window)
  const taken = yield* first(
    markRow,
    sql`update once_marks set action_id = ${id}, ends_at = ${now} + ${window.withinMs}
      where scope = ${scope} and signature = ${signature} and action_id = ${held.actionId}
        and not exists (select 1 from actions a where a.id = once_marks.action_id and a.again is null and ${stillCounts(window)})
      returning action_id`,
  )
  if (taken !== undefined) return released?.again == null ? { kind: 'mine' } : { kind: 'mine', released }
  return { kind: 'taken', by: yield* markedAction(scope, signature) }
}

function* markedAction(scope: string, signature: string): Transition<Action> {
  return yield* one(
    actionRow,
    sql`select a.* from once_marks m join actions a on a.id = m.action_id
      where m.scope = ${scope} and m.signature = ${signature}`,
  )
}

/**
 * Forgets whose turn it was, long after the window was over: one that is made longer in the configuration still finds what
 * was done lately. Asked again at the row itself: who takes an old mark over meanwhile keeps it.
 */
export function* forgetMarks(limit: number): Transition<number> {
  const isOver = sql`ends_at <= ${now} - ${LIMITS.messagesKeptMs}`
  return yield* run(sql`delete from once_marks where ${isOver} and (scope, signature) in (
    select m.scope, m.signature from once_marks m where ${isOver}
      and not exists (select 1 from actions a where a.id = m.action_id and a.state = 'started')
    order by m.ends_at limit ${limit})`)
}

/** For the statement that begins an action: nobody has taken the mark from it meanwhile. */
export const marked = (action: Action, agent: string, window: OnceWindow | undefined): Sql =>
  window === undefined
    ? sql`1 = 1`
    : sql`exists (select 1 from once_marks where scope = ${scopeOf(action, agent, window)}
        and signature = ${action.signature} and action_id = ${action.id})`

/** Who has the mark now, if another does. */
export function* takenBy(action: Action, agent: string, window: OnceWindow): Transition<Action | undefined> {
  const owner = yield* markedAction(scopeOf(action, agent, window), action.signature)
  return owner.id === action.id ? undefined : owner
}

export type Released =
  | { readonly kind: 'released'; readonly action: Action }
  /** Nothing keeps an identical call from being performed: it was not done, or its tool is done each time. */
  | { readonly kind: 'not-held'; readonly action: Action }
  /** Nobody knows whether it happened: that has to be settled first. */
  | { readonly kind: 'in-doubt'; readonly action: Action }
  | { readonly kind: 'unknown' }

/**
 * "Do it again": the next identical call is performed, once, although this one was done. Only a person says so, never the
 * model; and that call is asked for afresh, whatever the rules allow.
 */
export function* releaseAction(
  given: ActionId,
  { by, why }: { readonly by: string; readonly why?: string },
): Transition<Released> {
  const named = yield* findAction.single(given)
  // A call that was answered from another names what was done.
  const id = named?.repeatOf ?? given
  const evidence = `${by}${why === undefined ? '' : `: ${why}`}`
  const released = yield* first(
    actionRow,
    sql`update actions set again = ${evidence}
      where id = ${id} and repeats = 'once' and effect = 'write' and repeat_of is null and again is null
        and (state = 'done' or (state = 'in_doubt' and given_up is not null)) returning *`,
  )
  if (released === undefined) return yield* whyNotReleased(id)
  const { threadId, runId, tool } = released
  const data = { actionId: id, tool, by, ...(why === undefined ? {} : { why }) }
  yield* record({ type: 'action.released', threadId, runId, data })
  return { kind: 'released', action: released }
}

function* whyNotReleased(id: ActionId): Transition<Released> {
  const action = yield* findAction.single(id)
  if (action === undefined) return { kind: 'unknown' }
  const isOpen = action.state === 'started' || action.state === 'in_doubt'
  return { kind: isOpen && action.effect === 'write' && action.repeats === 'once' ? 'in-doubt' : 'not-held', action }
}
