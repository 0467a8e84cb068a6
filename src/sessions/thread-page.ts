import type { RunId, ThreadId } from '../base/ids.ts'
import { lastEventSeq } from '../events/event.ts'
import { RUN_STATES } from '../runs/run.ts'
import type { RunRequest } from '../runs/run.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { THREAD_STATES } from '../threads/thread.ts'
import { viewThread } from '../threads/view.ts'
import { doing } from './branch.ts'
import { CLIENTS, SESSION_STATES } from './session.ts'

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
  runCode: nullable(text()),
  runRequest: nullable(json<RunRequest>()),
  runCreatedAt: nullable(integer),
  runEndedAt: nullable(integer),
  client: nullable(oneOf(CLIENTS)),
  sessionState: nullable(oneOf(SESSION_STATES)),
  pending: integer,
  firstBody: nullable(json<Record<string, unknown>>()),
})
type ListedThread = Decoded<typeof listedRow>

/** Newest first, each with what it is at and what it began with; one statement, because a page may be far away. */
const threadPage = single((limit: number, after: ThreadId | undefined) =>
  all(
    listedRow,
    sql`select t.*, r.id as run_id, r.state as run_state, r.code as run_code, r.request as run_request,
        r.created_at as run_created_at, r.ended_at as run_ended_at, s.client, s.state as session_state,
        (select count(*) from messages m where m.thread_id = t.id and m.state = 'pending') as pending,
        (select m.body from messages m where m.thread_id = t.id and m.generation = t.generation
          order by m.seq limit 1) as first_body
      from threads t left join runs r on r.seq = (select max(seq) from runs where thread_id = t.id)
        left join sessions s on s.id = (select id from sessions where thread_id = t.id order by updated_at desc, id limit 1)
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
  const { runId, runState, runCode, runCreatedAt, runEndedAt, pending } = thread
  const preview = begunWith(thread)
  const run =
    runId === null || runState === null || runCreatedAt === null
      ? undefined
      : {
          id: runId,
          state: runState,
          createdAt: iso(runCreatedAt),
          ...(runEndedAt === null ? {} : { endedAt: iso(runEndedAt) }),
          ...(runCode === null ? {} : { code: runCode }),
        }
  return {
    ...viewThread(thread),
    ...(preview === undefined ? {} : { preview: preview.slice(0, PREVIEW_CHARACTERS) }),
    doing: doing(thread),
    pending,
    ...(run === undefined ? {} : { run }),
  }
}

function begunWith({ firstBody, runRequest }: ListedThread): string | undefined {
  if (typeof firstBody?.text === 'string') return firstBody.text
  return runRequest?.kind === 'command' ? runRequest.argv.join(' ') : undefined
}
