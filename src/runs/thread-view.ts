import { actionsSince } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { viewActionBriefly } from '../actions/view.ts'
import type { ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { lastEventSeq } from '../events/event.ts'
import type { Transition } from '../store/transition.ts'
import { entriesBefore } from '../threads/conversation.ts'
import type { Entry } from '../threads/conversation.ts'
import { latestMessages } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { findThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import { viewMessage, viewThread } from '../threads/view.ts'
import { listRuns } from './run.ts'
import type { Run } from './run.ts'
import { viewRun, viewStep } from './view.ts'

export interface WholeThread {
  readonly thread: Thread
  readonly runs: readonly Run[]
  readonly entries: readonly Entry[]
  readonly actions: readonly Action[]
  readonly messages: readonly Message[]
  /** The last event that this snapshot includes: whoever follows the events after it misses nothing. */
  readonly seq: number
}

/** A thread with the newest of everything that belongs to it, from one snapshot. */
export function* readWholeThread(id: ThreadId, limit: number): Transition<WholeThread | undefined> {
  const thread = yield* findThread.single(id)
  if (thread === undefined) return undefined
  const entries = yield* entriesBefore.single(id, thread.generation, undefined, limit)
  return {
    thread,
    entries,
    runs: yield* listRuns.single({ threadId: id, limit }),
    actions: entries[0] === undefined ? [] : yield* actionsSince.single(id, entries[0].seq),
    messages: yield* latestMessages.single(id, thread.generation, limit),
    seq: (yield* lastEventSeq.single()).seq,
  }
}

/** Of a call that is under way: what its model was asked stands in the conversation only once that is answered. */
function viewAsked({ input, endedAt }: Run): { readonly input?: unknown } {
  if (input === null || endedAt !== null || input.length > LIMITS.inputShown) return {}
  return { input: JSON.parse(input) as unknown }
}

/** What `threads show --json` prints and `GET /api/v1/threads/ID` answers. */
export const viewWholeThread = ({ thread, runs, entries, actions, messages, seq }: WholeThread) => ({
  ...viewThread(thread),
  runs: runs.map((run) => ({ ...viewRun(run), ...viewAsked(run) })),
  conversation: entries.map(viewStep),
  actions: actions.map(viewActionBriefly),
  messages: messages.map(viewMessage),
  seq,
})
