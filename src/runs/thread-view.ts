import { actionsSince } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { viewAction } from '../actions/view.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import { lastEventSeq } from '../events/event.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { latestEntries } from '../threads/conversation.ts'
import type { Entry } from '../threads/conversation.ts'
import { latestMessages } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { THREAD_STATES, findThread } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import { viewMessage, viewThread } from '../threads/view.ts'
import { RUN_STATES, listRuns } from './run.ts'
import type { Run, RunRequest } from './run.ts'
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
  const entries = yield* latestEntries.single(id, thread.generation, limit)
  return {
    thread,
    entries,
    runs: yield* listRuns.single({ threadId: id, limit }),
    actions: entries[0] === undefined ? [] : yield* actionsSince.single(id, entries[0].seq),
    messages: yield* latestMessages.single(id, thread.generation, limit),
    seq: (yield* lastEventSeq.single()).seq,
  }
}

/** What `threads show --json` prints and `GET /api/v1/threads/ID` answers. */
export const viewWholeThread = ({ thread, runs, entries, actions, messages, seq }: WholeThread) => ({
  ...viewThread(thread),
  runs: runs.map((run) => viewRun(run)),
  conversation: entries.map(viewStep),
  actions: actions.map(viewAction),
  messages: messages.map(viewMessage),
  seq,
})

const listedRow = row({
  id: text<ThreadId>(),
  generation: integer,
  agent: text(),
  state: oneOf(THREAD_STATES),
  parentId: nullable(text<ThreadId>()),
  createdAt: integer,
  removedAt: nullable(integer),
  runId: nullable(text<RunId>()),
  runState: nullable(oneOf(RUN_STATES)),
  runRequest: nullable(json<RunRequest>()),
  runCreatedAt: nullable(integer),
  runEndedAt: nullable(integer),
  firstBody: nullable(json<Record<string, unknown>>()),
})
type ListedThread = Decoded<typeof listedRow>

/** Newest first, each with its latest run and what it began with; one statement, because a page may be far away. */
const threadPage = single((limit: number, after: ThreadId | undefined) =>
  all(
    listedRow,
    sql`select t.*, r.id as run_id, r.state as run_state, r.request as run_request, r.created_at as run_created_at,
        r.ended_at as run_ended_at, (select m.body from messages m where m.thread_id = t.id and m.generation = t.generation
          order by m.created_at, m.id limit 1) as first_body
      from threads t left join runs r on r.seq = (select max(seq) from runs where thread_id = t.id)
      where t.state <> 'removed' and ${
        after === undefined
          ? sql`1 = 1`
          : sql`(t.created_at, t.id) < (select created_at, id from threads where id = ${after})`
      }
      order by t.created_at desc, t.id desc limit ${limit}`,
  ),
)

export interface ThreadPage {
  readonly threads: readonly ListedThread[]
  readonly seq: number
}

export function* readThreadPage(limit: number, after?: ThreadId): Transition<ThreadPage> {
  return { threads: yield* threadPage.single(limit, after), seq: (yield* lastEventSeq.single()).seq }
}

const PREVIEW_CHARACTERS = 120

const iso = (instant: number) => new Date(instant).toISOString()

export function viewListedThread(thread: ListedThread) {
  const { runId, runState, runCreatedAt, runEndedAt } = thread
  const preview = begunWith(thread)
  const run =
    runId === null || runState === null || runCreatedAt === null
      ? undefined
      : {
          id: runId,
          state: runState,
          createdAt: iso(runCreatedAt),
          ...(runEndedAt === null ? {} : { endedAt: iso(runEndedAt) }),
        }
  return {
    ...viewThread(thread),
    ...(preview === undefined ? {} : { preview: preview.slice(0, PREVIEW_CHARACTERS) }),
    ...(run === undefined ? {} : { run }),
  }
}

function begunWith({ firstBody, runRequest }: ListedThread): string | undefined {
  if (typeof firstBody?.text === 'string') return firstBody.text
  return runRequest?.kind === 'command' ? runRequest.argv.join(' ') : undefined
}
