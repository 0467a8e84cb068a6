import type * as Crypto from 'node:crypto'

import { systemClock } from './clock.ts'

let loaded: typeof Crypto | undefined

// Loaded with the first id: it takes a third of the time in which Node itself starts, and who only reads makes none. And once: to ask
// for it again takes longer than to make an id.
const crypto = () => (loaded ??= process.getBuiltinModule('node:crypto'))

/** Ids are branded: a run's id does not fit where a thread's is wanted. */
type Branded<Name extends string> = string & { readonly __id: Name }

export type ThreadId = Branded<'thread'>
export type RunId = Branded<'run'>
export type AttemptId = Branded<'attempt'>
export type MessageId = Branded<'message'>
export type WorkerId = Branded<'worker'>
export type ActionId = Branded<'action'>
export type ApprovalId = Branded<'approval'>
export type ScheduleId = Branded<'schedule'>
export type OccurrenceId = Branded<'occurrence'>

export interface Randomness {
  /** A time-ordered id: neighbours in time are neighbours in an index. Those of one process come in its order. */
  id(): string
  /** Unguessable hexadecimal digits. */
  hex(bytes: number): string
  /** In [0, 1): for jitter, never for secrets. */
  fraction(): number
}

/** Of the last id: its millisecond, that in hexadecimal digits, and which it was within it. */
let [last, digits, within] = [0, '', 0]

/**
 * A UUIDv7 without its hyphens, of which twelve random bits have given way to a count within its millisecond, as RFC 9562 allows: of a
 * thousand rows that are stored at once, those that are handled together then lie on the same pages of an index. The other 62
 * stay random.
 */
function idInOrder(): string {
  const at = systemClock.now()
  within = at > last ? 0 : within + 1
  // More in a millisecond than there are numbers: the next one is begun early.
  if (at > last || within > 0xfff) begin(Math.max(at, last + 1))
  return `${digits}${(0x7000 + within).toString(16)}${randomDigits()}`
}

function begin(millisecond: number): void {
  ;[last, digits, within] = [millisecond, millisecond.toString(16).padStart(12, '0'), 0]
}

const RANDOM_BYTES = 8
let [pool, used] = [Buffer.alloc(0), 0]

/** Asked for by the thousand: one call costs as much as all of them. */
function randomDigits(): string {
  if (used === pool.length) [pool, used] = [crypto().randomBytes(512 * RANDOM_BYTES), 0]
  // The variant of a UUID is in its first two bits here.
  pool[used] = (pool[used]! & 0x3f) | 0x80
  return pool.toString('hex', used, (used += RANDOM_BYTES))
}

export const systemRandomness: Randomness = {
  id: idInOrder,
  hex: (bytes) => crypto().randomBytes(bytes).toString('hex'),
  fraction: () => Math.random(),
}

export const newThreadId = (random: Randomness) => `thr_${random.id()}` as ThreadId
export const newRunId = (random: Randomness) => `run_${random.id()}` as RunId
export const newAttemptId = (random: Randomness) => `att_${random.id()}` as AttemptId
export const newMessageId = (random: Randomness) => `msg_${random.id()}` as MessageId
export const newActionId = (random: Randomness) => `act_${random.id()}` as ActionId
export const newScheduleId = (random: Randomness) => `sch_${random.id()}` as ScheduleId
export const newWorkerId = (random: Randomness) => `wrk_${random.id()}` as WorkerId
