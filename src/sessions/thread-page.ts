import { iso } from '../base/clock.ts'
import type { ThreadId } from '../base/ids.ts'
import { lastEventSeq } from '../events/event.ts'
import type { RunRequest } from '../runs/run.ts'
import { integer, json, nullable, row } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { viewThread } from '../threads/view.ts'
import { AT_WORK, AT_WORK_COLUMNS, THREADS_AT_WORK } from './at-work.ts'
import { doing } from './branch.ts'

const listedRow = row({
  ...AT_WORK_COLUMNS,
  runRequest: nullable(json<RunRequest>()),
  runCreatedAt: nullable(integer),
  runEndedAt: nullable(integer),
  firstBody: nullable(json<Record<string, unknown>>()),
})
type ListedThread = Decoded<typeof listedRow>

/** Newest first, each with what it is at and what it began with; one statement, because a page may be far away. */
const threadPage = single((limit: number, after: ThreadId | undefined) =>
  all(
    listedRow,
    sql`select ${AT_WORK}, r.request as run_request, r.created_at as run_created_at, r.ended_at as run_ended_at,
        (select m.body from messages m where m.thread_id = t.id and m.generation = t.generation
          order by m.seq limit 1) as first_body
      from ${THREADS_AT_WORK}
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
