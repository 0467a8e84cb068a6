import type { RunId, ThreadId } from '../base/ids.ts'
import { integer, json, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/** `summary`: from here on it stands for what came before it. */
const ENTRY_KINDS = ['user', 'assistant', 'summary'] as const
export type EntryKind = (typeof ENTRY_KINDS)[number]

const entryRow = row({
  seq: integer,
  threadId: text<ThreadId>(),
  generation: integer,
  runId: text<RunId>(),
  kind: oneOf(ENTRY_KINDS),
  body: json<Record<string, unknown>>(),
  inputTokens: integer,
  outputTokens: integer,
  costMicrousd: integer,
  createdAt: integer,
})
/** What a model was shown, or what it said. Results of tools are with their actions. */
export type Entry = Decoded<typeof entryRow>

export interface NewEntry {
  readonly threadId: ThreadId
  readonly generation: number
  readonly runId: RunId
  readonly kind: EntryKind
  readonly body: Readonly<Record<string, unknown>>
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number; readonly costMicrousd: number }
}

export function* appendEntry(entry: NewEntry): Transition<Entry> {
  const { threadId, generation, runId, kind, body, usage } = entry
  return yield* one(
    entryRow,
    sql`insert into entries (thread_id, generation, run_id, kind, body, input_tokens, output_tokens, cost_microusd, created_at)
      values (${threadId}, ${generation}, ${runId}, ${kind}, ${JSON.stringify(body)}, ${usage?.inputTokens ?? 0},
        ${usage?.outputTokens ?? 0}, ${usage?.costMicrousd ?? 0}, ${now})
      returning *`,
  )
}

export const conversationOf = single((threadId: ThreadId, generation: number) =>
  all(entryRow, sql`select * from entries where thread_id = ${threadId} and generation = ${generation} order by seq`),
)

/** What the model was shown and said after an entry; without one, everything. */
export const conversationAfter = single((threadId: ThreadId, generation: number, after: number) =>
  all(
    entryRow,
    sql`select * from entries where thread_id = ${threadId} and generation = ${generation} and seq > ${after}
      and kind <> 'summary' order by seq`,
  ),
)

export const lastSummaryOf = single((threadId: ThreadId, generation: number) =>
  first(
    entryRow,
    sql`select * from entries where thread_id = ${threadId} and generation = ${generation} and kind = 'summary'
      order by seq desc limit 1`,
  ),
)

const countRow = row({ count: integer })

/** Replies that a run has had, over all of its attempts. */
export const countReplies = single((runId: RunId) =>
  one(countRow, sql`select count(*) as count from entries where run_id = ${runId} and kind = 'assistant'`),
)

/** What came before an entry, or without one the end of the conversation: at most so many, oldest first. */
export const entriesBefore = single(
  (threadId: ThreadId, generation: number, before: number | undefined, limit: number) =>
    all(
      entryRow,
      sql`select * from (select * from entries where thread_id = ${threadId} and generation = ${generation}
        and ${before === undefined ? sql`1 = 1` : sql`seq < ${before}`}
        order by seq desc limit ${limit}) as latest order by seq`,
    ),
)

export const entriesOfRun = single((runId: RunId) =>
  all(entryRow, sql`select * from entries where run_id = ${runId} order by seq`),
)

export const findEntry = single((seq: number) => first(entryRow, sql`select * from entries where seq = ${seq}`))
