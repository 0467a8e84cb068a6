import type { Instant } from '../base/clock.ts'
import type { Event } from '../events/event.ts'
import { eventsAfter, record } from '../events/event.ts'
import { LIMITS } from '../base/limits.ts'
import { storeTime } from '../store/clock.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { noticeOf } from './matter.ts'
import type { Notice } from './matter.ts'

/*
 * Telling a person outside is no part of what happened: it is derived from the log, by a cursor that moves in the same
 * transaction that stores what is to be told. So nothing is left out and no transition knows of it. Each notice is sent at
 * least once, tried a few times, and then given up where everybody can see it. None of it ever decides anything.
 */

const NOTICE_MOVES = {
  pending: ['sent', 'given_up'],
  sent: [],
  given_up: [],
} as const satisfies Record<string, readonly string[]>
const NOTICE_STATES = Object.keys(NOTICE_MOVES) as (keyof typeof NOTICE_MOVES)[]

const noticeRow = row({
  id: text(),
  /** By which way, as the configuration names it; no secrets. */
  channel: text(),
  body: json<Notice>(),
  state: oneOf(NOTICE_STATES),
  tries: integer,
  nextAt: integer,
  createdAt: integer,
  settledAt: nullable(integer),
  error: nullable(text()),
})
export type StoredNotice = Decoded<typeof noticeRow>

const cursorRow = row({ seq: integer })

/** Looks at the next events and stores what they mean for a person, for each channel. How many events it looked at. */
export function* queueNotices(channels: readonly string[]): Transition<number> {
  yield* run(sql`insert into notice_cursor (id, seq) values (1, 0) on conflict do nothing`)
  const cursor = yield* first(cursorRow, sql`select seq from notice_cursor where id = 1`)
  const seq = cursor?.seq ?? 0
  const events = yield* eventsAfter.single(seq, LIMITS.page)
  const last = events.at(-1)
  if (last === undefined) return 0
  // Another daemon may have looked at the same: one of the two moves the cursor.
  const moved = yield* run(sql`update notice_cursor set seq = ${last.seq} where id = 1 and seq = ${seq}`)
  if (moved === 0) return 0
  const { at } = yield* storeTime.single()
  for (const event of events) yield* storeNotices(event, channels, at)
  return events.length
}

/** So that the order of texts is that of numbers. */
const SEQ_DIGITS = 16

function* storeNotices(event: Event, channels: readonly string[], at: Instant): Transition<void> {
  const notice = yield* noticeOf(event, at)
  if (notice === undefined) return
  for (const channel of channels) {
    yield* run(sql`insert into notices (id, channel, body, state, next_at, created_at)
      values (${`${String(event.seq).padStart(SEQ_DIGITS, '0')} ${channel}`}, ${channel}, ${JSON.stringify(notice)}, 'pending', ${now}, ${now})
      on conflict do nothing`)
  }
}

export const dueNotices = single((limit: number) =>
  all(
    noticeRow,
    sql`select * from notices where state = 'pending' and next_at <= ${now} order by next_at, id limit ${limit}`,
  ),
)

/**
 * Before it is sent: who counts the try sends it. If nobody comes back to say what became of it, it is due again, each
 * time twice as late.
 */
export function* tryNotice({ id, tries }: StoredNotice): Transition<StoredNotice | undefined> {
  return yield* first(
    noticeRow,
    sql`update notices set tries = tries + 1, next_at = ${now} + ${LIMITS.noticeFirstMs * 2 ** tries}
      where id = ${id} and state = 'pending' and tries = ${tries} returning *`,
  )
}

/** What became of a try; undefined: it was sent. After the last one it is given up, and that is an event. */
export function* settleNotice({ id, tries }: StoredNotice, error?: string): Transition<StoredNotice | undefined> {
  const state = error === undefined ? 'sent' : tries >= LIMITS.noticeTries ? 'given_up' : 'pending'
  const settled = yield* first(
    noticeRow,
    sql`update notices set state = ${state}, error = ${error ?? null},
        settled_at = ${state === 'pending' ? sql`null` : sql`${now}`}
      where id = ${id} and state = 'pending' and tries = ${tries} returning *`,
  )
  if (settled?.state === 'given_up') {
    const { channel, body } = settled
    yield* record({ type: 'notice.given_up', data: { noticeId: id, channel, about: body.title, error: error ?? '' } })
  }
  return settled
}

/** Forgets what was told, or given up, long ago: a bounded number at a time. What is still to be told stays. */
export function* forgetNotices(limit: number): Transition<number> {
  return yield* run(sql`delete from notices where id in (
    select id from notices where state <> 'pending' and settled_at <= ${now} - ${LIMITS.messagesKeptMs}
    order by settled_at limit ${limit})`)
}

/** What nobody was told lately, newest first. */
export const noticesGivenUp = single((limit: number, withinMs: number) =>
  all(
    noticeRow,
    sql`select * from notices where state = 'given_up' and settled_at > ${now} - ${withinMs}
      order by settled_at desc limit ${limit}`,
  ),
)
