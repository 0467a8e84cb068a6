import { listActions } from '../../src/actions/action.ts'
import { askedMatters, doubtfulMatters, viewAsked, viewDoubt } from '../../src/actions/desk.ts'
import { viewAction } from '../../src/actions/view.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import { listRuns } from '../../src/runs/run.ts'
import { readWholeThread, viewWholeThread } from '../../src/runs/thread-view.ts'
import { readWholeRun, viewEvent, viewRun, viewWholeRun } from '../../src/runs/view.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import { listSchedules } from '../../src/schedule/schedule.ts'
import { viewOccurrence, viewSchedule } from '../../src/schedule/view.ts'
import { readThreadPage, viewListedThread } from '../../src/sessions/thread-page.ts'
import type { Transition } from '../../src/store/transition.ts'
import { MESSAGE_STATES, messagePage } from '../../src/threads/message.ts'
import { viewMessage } from '../../src/threads/view.ts'

/** No sequence makes nearly so many of anything. */
const ALL = 200

/** Of which run and thread everything is shown, besides the lists. */
export interface Shown {
  readonly runId?: string | undefined
  readonly threadId?: string | undefined
}

/** What the doors give, from one snapshot; of the log what came after `seq`. */
export function* look({ runId, threadId }: Shown, seq: number) {
  const run = runId === undefined ? undefined : yield* readWholeRun(runId as RunId)
  const thread = threadId === undefined ? undefined : yield* readWholeThread(threadId as ThreadId, ALL)
  const events = yield* eventsAfter.single(seq, ALL)
  return {
    runs: (yield* listRuns.single({ limit: ALL })).map((each) => viewRun(each)),
    threads: (yield* readThreadPage(ALL)).threads.map(viewListedThread),
    messages: (yield* messagePage.single({ states: MESSAGE_STATES, limit: ALL })).map(viewMessage),
    approvals: (yield* askedMatters(ALL)).map(viewAsked),
    doubts: (yield* doubtfulMatters(ALL)).map(viewDoubt),
    actions: (yield* listActions.single({ limit: ALL })).map(viewAction),
    schedules: (yield* listSchedules.single({ limit: ALL })).map(viewSchedule),
    occurrences: (yield* listOccurrences.single({ limit: ALL })).map((each) => viewOccurrence(each)),
    run: run === undefined ? undefined : viewWholeRun(run),
    thread: thread === undefined ? undefined : viewWholeThread(thread),
    events: events.map(viewEvent),
    lastSeq: events.at(-1)?.seq ?? seq,
  }
}

type Look = typeof look extends (...args: never[]) => Transition<infer Public> ? Public : never

const NUMBERS: ReadonlySet<string> = new Set(['seq', 'lastSeq', 'entry'])

/** Without the numbers that a database gives by itself. */
export const withoutNumbers = (seen: unknown): string =>
  JSON.stringify(seen, (key, value: unknown) => (NUMBERS.has(key) ? undefined : value))

const byId = <T extends { readonly id: string }>(items: readonly T[]) =>
  items.toSorted((a, b) => (a.id < b.id ? -1 : 1))

/** The part of it that the model speaks of. */
export function spoken(seen: Look) {
  return {
    runs: seen.runs.map(
      ({ id, threadId, agent, state, attempt, code, parkedFor, cancelRequestedAt, parentThreadId }) => ({
        id,
        threadId,
        agent,
        state,
        attempt,
        code,
        parkedFor,
        isCancelled: cancelRequestedAt !== undefined,
        parent: parentThreadId,
      }),
    ),
    threads: byId(seen.threads).map(({ id, agent, state, generation, parentId, pending }) => ({
      id,
      agent,
      state,
      generation,
      parentId,
      pending,
    })),
    messages: seen.messages.map(({ id, threadId, from, kind, key, state, reason, consumedByRun }) => ({
      id,
      threadId,
      from,
      kind,
      key,
      state,
      reason,
      consumedByRun,
    })),
    approvals: seen.approvals.map(({ actionId, runId, state, expiresAt }) => ({ actionId, runId, state, expiresAt })),
    doubts: seen.doubts.map(({ id, tries }) => ({ id, tries })),
    actions: byId(seen.actions).map(({ id, runId, state, repeatOf }) => ({ id, runId, state, repeatOf })),
    schedules: byId(seen.schedules).map(({ id, name, state, nextAt, firings, failures }) => ({
      id,
      name,
      state,
      nextAt,
      firings,
      failures,
    })),
    occurrences: byId(seen.occurrences).map(({ id, state, runId }) => ({ id, state, runId })),
    attempts: seen.run?.attempts.map(({ id, workerId, outcome }) => ({ id, workerId, outcome })),
    events: seen.events.map(({ type, threadId, runId }) => ({ type, threadId, runId })),
  }
}
