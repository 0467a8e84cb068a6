import { invariant } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { integer, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { kept, now, sql } from '../store/sql.ts'
import { all, first, holding, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/**
 * A durable conversation with an agent. A stopped one gets no turn until a person writes to it. Removing it ends its
 * generation; its id may then start a new one.
 */
export const THREAD_MOVES = {
  open: ['stopped', 'removed'],
  stopped: ['open', 'removed'],
  removed: ['open'],
} as const satisfies Record<string, readonly string[]>
export type ThreadState = keyof typeof THREAD_MOVES
export const THREAD_STATES = Object.keys(THREAD_MOVES) as ThreadState[]

export const THREAD_COLUMNS = {
  id: text<ThreadId>(),
  generation: integer,
  agent: text(),
  state: oneOf(THREAD_STATES),
  parentId: nullable(text<ThreadId>()),
  createdAt: integer,
  removedAt: nullable(integer),
}
export const threadRow = row(THREAD_COLUMNS)
export type Thread = Decoded<typeof threadRow>

/** Finds the thread or opens it. Two that open the same id together get the same thread. */
export function* openThread(id: ThreadId, agent: string, parentId: ThreadId | null): Transition<Thread> {
  return (yield* findOrOpen(id, agent, parentId)).thread
}

interface Opened {
  readonly thread: Thread
  /** One of that name had been removed: this is another. */
  readonly anew: boolean
}

export function* findOrOpen(id: ThreadId, agent: string, parentId: ThreadId | null): Transition<Opened> {
  // Looked up first: an insert that meets its key locks that row until the commit, also when it then changes nothing. And kept: what
  // comes with it, as a run, names it.
  const known = yield* first(threadRow, sql`select * from threads where id = ${id} ${kept}`)
  if (known !== undefined && known.state !== 'removed') return { thread: known, anew: false }
  const created = yield* first(
    threadRow,
    sql`insert into threads (id, agent, parent_id, created_at) values (${id}, ${agent}, ${parentId}, ${now})
      on conflict (id) do update
        set state = 'open', generation = threads.generation + 1, agent = excluded.agent, parent_id = excluded.parent_id,
          created_at = excluded.created_at, removed_at = null
        where threads.state = 'removed'
      returning *`,
  )
  if (created === undefined) return { thread: yield* readThread(id), anew: false }
  yield* record({ type: 'thread.created', threadId: id, data: { agent, generation: created.generation, parentId } })
  return { thread: created, anew: created.generation > 1 }
}

function* readThread(id: ThreadId): Transition<Thread> {
  const thread = yield* findThread.single(id)
  invariant(thread !== undefined, `thread ${id} vanished inside a transaction`)
  return thread
}

export const findThread = single((id: ThreadId) => first(threadRow, sql`select * from threads where id = ${id}`))

/** The thread, held until the commit: it is stopped, opened again or removed before this, and seen so, or after it. */
export function* holdThread(id: ThreadId): Transition<Thread | undefined> {
  const statement = first(threadRow, sql`update threads set agent = agent where id = ${id} returning *`)
  return yield* holding(`thread:${id}`, statement)
}

/** Threads whose id starts with `prefix`, two at most: enough to know whether it is unique. */
export const threadsByPrefix = single((prefix: string) =>
  all(
    threadRow,
    sql`select * from threads where id >= ${prefix} and id < ${`${prefix}\u{10ffff}`} order by id limit 2`,
  ),
)
