import type { Instant } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { integer, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, one, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/*
 * A rate limit is a fact about the account, not about the call that met it: it is stored, and every run and process on
 * that account waits until the same instant, also after a restart.
 *
 *   no row ──blocked──▶ blocked ──its instant comes──▶ unproven ──a call succeeds, a while later──▶ no row
 *                        ▲  └─ longer, never shorter      │
 *                        └────────a call is refused───────┘
 *
 * While it is unproven the calls go in single file: each gets a slot of its own, the first one at once, as a probe.
 * Slots are given when the block is over, not before: a call that was cancelled or parked meanwhile would leave a hole.
 */

const quotaRow = row({ quota: text(), blockedUntil: integer, nextSlot: integer, reason: text() })
export type BlockedQuota = Decoded<typeof quotaRow>

const seenRow = row({ blockedUntil: integer, reason: text(), at: integer })
const slotRow = row({ blockedUntil: integer, slot: integer, at: integer })
const blockedRow = row({ blockedUntil: integer })

/** A place in the file, and the block that it comes after. */
export interface Slot {
  readonly at: Instant
  readonly blockedUntil: Instant
}

export type QuotaAnswer =
  /** Go. With a slot the call is evidence about the block: tell `quotaSucceeded`. */
  | { readonly kind: 'go'; readonly slot?: Slot }
  /** Ask again after this, with the slot if there is one. */
  | {
      readonly kind: 'wait'
      readonly waitMs: number
      readonly until: Instant
      readonly reason: string
      readonly slot?: Slot
    }

const readQuota = single((quota: string) =>
  first(seenRow, sql`select blocked_until, reason, ${now} as at from quotas where quota = ${quota}`),
)

/** What is known without taking a slot; `undefined` when it is one's turn to take one. One read, no write. */
export function* seeQuota(quota: string, held?: Slot): Transition<QuotaAnswer | undefined> {
  const seen = yield* readQuota.single(quota)
  if (seen === undefined) return { kind: 'go' }
  const { blockedUntil: until, at, reason } = seen
  if (until > at) return { kind: 'wait', waitMs: until - at, until, reason }
  // A slot from before a longer block is void.
  if (held === undefined || held.at < until) return undefined
  const slot = { at: held.at, blockedUntil: until }
  if (slot.at <= at) return { kind: 'go', slot }
  return { kind: 'wait', waitMs: slot.at - at, until: slot.at, reason, slot }
}

/** Whether a call may go now, and how long it has to wait if not. */
export function* waitFor(quota: string, held?: Slot): Transition<QuotaAnswer> {
  const seen = yield* seeQuota(quota, held)
  if (seen !== undefined) return seen
  const given = yield* first(
    slotRow,
    sql`update quotas
      set next_slot = case when next_slot > ${now} then next_slot else ${now} end + ${LIMITS.quotaSpacingMs}
      where quota = ${quota} and blocked_until <= ${now}
      returning blocked_until, next_slot - ${LIMITS.quotaSpacingMs} as slot, ${now} as at`,
  )
  // Cleared, or blocked again, since it was looked at.
  if (given === undefined) return (yield* seeQuota(quota)) ?? { kind: 'go' }
  const slot = { at: given.slot, blockedUntil: given.blockedUntil }
  if (slot.at <= given.at) return { kind: 'go', slot }
  return { kind: 'wait', waitMs: slot.at - given.at, until: slot.at, reason: 'others on this account go first', slot }
}

/** Nobody on this account calls before that; an earlier end than the one known changes nothing. Says when it ends. */
export const blockQuota = single((quota: string, afterMs: number, reason: string) =>
  one(
    blockedRow,
    sql`insert into quotas (quota, blocked_until, next_slot, reason)
      values (${quota}, ${now} + ${afterMs}, ${now} + ${afterMs}, ${reason})
      on conflict (quota) do update set
        reason = case when quotas.blocked_until < excluded.blocked_until then excluded.reason else quotas.reason end,
        blocked_until = case when quotas.blocked_until < excluded.blocked_until
          then excluded.blocked_until else quotas.blocked_until end,
        next_slot = case when quotas.next_slot < excluded.next_slot then excluded.next_slot else quotas.next_slot end
      returning blocked_until`,
  ),
)

/**
 * A call that came after this block went through, so it is over; a call from before it proves nothing, and holds no slot
 * of it. The file is kept up for a while all the same: were it dissolved at once, everyone who wakes after the probe's
 * success would go at the same time (test/model/quota.test.ts).
 */
export const quotaSucceeded = single((quota: string, slot: Slot) =>
  run(sql`delete from quotas where quota = ${quota} and blocked_until = ${slot.blockedUntil}
    and blocked_until <= ${now} - ${LIMITS.quotaRecoveryMs}`),
)

export const blockedQuotas = single(() =>
  all(quotaRow, sql`select quota, blocked_until, next_slot, reason from quotas order by quota`),
)
