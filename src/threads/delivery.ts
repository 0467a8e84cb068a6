import type { RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { holdRun, resumeWaiting } from '../runs/park.ts'
import { findRun } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { settleRun } from '../schedule/run-ended.ts'
import { leadsTo } from '../schedule/settle.ts'
import { integer, json, row, text } from '../store/row.ts'
import type { Row } from '../store/row.ts'
import { literals, now, sql } from '../store/sql.ts'
import type { Sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { keepNewestWaiting, messageRow } from './message.ts'
import type { Message } from './message.ts'
import { messageText } from './message-text.ts'
import { holdThread } from './thread.ts'

/**
 * Who took a delivery. A process gives it back by dying; a session acknowledges it by its next event; what a person took by
 * hand comes back after a while.
 */
export type Taker =
  | { readonly kind: 'process'; readonly identity: unknown }
  | { readonly kind: 'session'; readonly session: string }
  | { readonly kind: 'hand' }

export interface NewDelivery {
  readonly id: string
  readonly threadId: ThreadId
  readonly by: Taker
  /** At most so many messages, and so many bytes of their bodies. */
  readonly limit: number
  readonly bytes: number
}

export interface Delivery {
  readonly id: string
  readonly messages: readonly Message[]
  /** What is still in the inbox: it comes with the next delivery. */
  readonly remaining: number
}

/** Takes what waits in an inbox, oldest first. Of several takers each gets what no other has. */
export function* leaseMessages({ id, threadId, by, limit, bytes }: NewDelivery): Transition<Delivery> {
  const known = (yield* findDelivery.single(id)).filter(({ state }) => state === 'leased')
  // Its own doing, whose answer was lost.
  if (known.length > 0) return { id, messages: known, remaining: yield* countWaiting(threadId) }
  const waiting = yield* all(
    messageRow,
    sql`select * from messages where thread_id = ${threadId} and state = 'pending' order by seq limit ${limit}`,
  )
  const chosen = withinBytes(waiting, bytes).map((message) => message.id)
  const leased =
    chosen.length === 0
      ? []
      : yield* all(
          messageRow,
          sql`update messages set state = 'leased', delivery_id = ${id}, leased_by = ${JSON.stringify(by)}, leased_at = ${now}
            where id in (${literals(chosen)}) and state = 'pending' returning *`,
        )
  if (leased.length > 0) {
    yield* record({ type: 'message.leased', threadId, data: { deliveryId: id, messages: leased.length } })
    // Whoever was woken for them was not woken in vain.
    yield* run(sql`update sessions set woken_at = null where thread_id = ${threadId} and woken_at is not null`)
  }
  const inOrder = leased.toSorted((a, b) => chosen.indexOf(a.id) - chosen.indexOf(b.id))
  return { id, messages: inOrder, remaining: yield* countWaiting(threadId) }
}

const countRow = row({ count: integer })

function* countWaiting(threadId: ThreadId): Transition<number> {
  const { count } = yield* one(
    countRow,
    sql`select count(*) as count from messages where thread_id = ${threadId} and state = 'pending'`,
  )
  return count
}

/** One message always fits: it has a limit of its own. */
function withinBytes(messages: readonly Message[], bytes: number): readonly Message[] {
  let total = 0
  return messages.filter((message, index) => {
    total += Buffer.byteLength(JSON.stringify(message.body))
    return index === 0 || total <= bytes
  })
}

/** With the order in which they came, which is nobody else's concern. */
const arrivalRow: Row<{ readonly seq: number; readonly message: Message }> = {
  decode: (cells) => ({ seq: integer(cells['seq'], 'seq'), message: messageRow.decode(cells) }),
}

/**
 * They were seen: each takes effect in this one turn, `runId` if it is a run that we know. That may have ended before anybody
 * knew that it had them; its end is then the outcome of what was fired, as it would have been.
 */
export function* acknowledgeDelivery(deliveryId: string, runId: RunId | null = null): Transition<readonly Message[]> {
  const taker = runId === null ? undefined : yield* takerOf(runId)
  const arrived = yield* all(
    arrivalRow,
    sql`update messages set state = 'consumed', settled_at = ${now}, consumed_by_run = ${taker?.id ?? null}
      where delivery_id = ${deliveryId} and state = 'leased' returning *`,
  )
  // A database tells of what it changed in any order.
  const consumed = arrived.toSorted((a, b) => a.seq - b.seq).map(({ message }) => message)
  for (const { id, threadId, kind } of consumed) {
    yield* record({
      type: 'message.consumed',
      threadId,
      ...(taker === undefined ? {} : { runId: taker.id }),
      data: { messageId: id, deliveryId },
    })
    if (kind === 'followup') yield* leadsTo(id, taker?.id ?? null)
  }
  if (taker !== undefined && taker.endedAt !== null) yield* settleRun(taker)
  return consumed
}

/** Held: of its end and of what it took, the later one sees the other. */
function* takerOf(runId: RunId): Transition<Run | undefined> {
  yield* holdRun(runId)
  return yield* findRun.single(runId)
}

/** Nobody saw them: they wait again, under the same ids. */
export function* giveBackDelivery(deliveryId: string): Transition<readonly Message[]> {
  const taken = yield* first(
    threadRow,
    sql`select thread_id from messages where delivery_id = ${deliveryId} and state = 'leased' limit 1`,
  )
  if (taken === undefined) return []
  yield* holdThread(taken.threadId)
  const returned = yield* all(
    messageRow,
    sql`update messages set state = 'pending', delivery_id = null, leased_by = null, leased_at = null
      where delivery_id = ${deliveryId} and state = 'leased' returning *`,
  )
  const [some] = returned
  if (some !== undefined) {
    yield* record({
      type: 'message.returned',
      threadId: some.threadId,
      data: { deliveryId, messages: returned.length },
    })
  }
  // Newer news of the same child may have come meanwhile.
  for (const message of returned) yield* keepNewestWaiting(message)
  if (some !== undefined) yield* resumeWaiting(some.threadId)
  return returned
}

const threadRow = row({ threadId: text<ThreadId>() })

const openRow = row({
  deliveryId: text(),
  threadId: text<ThreadId>(),
  leasedBy: json<Taker>(),
  leasedAt: integer,
  isOld: integer,
  messages: integer,
})

const underWay = (which: Sql, limit: number) =>
  all(
    openRow,
    sql`select delivery_id, thread_id, leased_by, min(leased_at) as leased_at, count(*) as messages,
        case when min(leased_at) <= ${now} - ${LIMITS.deliveryByHandMs} then 1 else 0 end as is_old
      from messages where state = 'leased' and ${which}
      group by delivery_id, thread_id, leased_by order by min(leased_at) limit ${limit}`,
  )

/** Deliveries under way, oldest first, for whoever looks after those whose taker is gone. */
export const openDeliveries = single((limit: number) => underWay(sql`1 = 1`, limit))

export const openDelivery = single((deliveryId: string) => underWay(sql`delivery_id = ${deliveryId}`, 1))

export const findDelivery = single((deliveryId: string) =>
  all(messageRow, sql`select * from messages where delivery_id = ${deliveryId} order by seq`),
)

const contentRow = row({ content: text() })

/** What a model or a command is shown of messages: of what is asked of it the whole. */
export function* textsOf(messages: readonly Message[]): Transition<Shown[]> {
  const shown: Shown[] = []
  for (const message of messages) {
    const isLong =
      (message.kind === 'prompt' || message.kind === 'followup') && message.body['attachedBytes'] !== undefined
    const whole = isLong ? yield* attachmentOf.single(message.id) : undefined
    shown.push({ messageId: message.id, text: messageText(message, whole?.content) })
  }
  return shown
}

export interface Shown {
  readonly messageId: string
  readonly text: string
}

/** The whole text of a message that carries only its beginning. */
export const attachmentOf = single((messageId: string) =>
  first(contentRow, sql`select content from attachments where message_id = ${messageId}`),
)
