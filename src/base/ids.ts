import type * as Crypto from 'node:crypto'

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

let last = ''
let within = 0

/**
 * Twelve random bits of a UUIDv7 give way to a count within its millisecond, as RFC 9562 allows: of a thousand rows that are
 * stored at once, those that are handled together then lie on the same pages of an index. The other 62 stay random.
 */
function inOrder(uuid: string): string {
  const when = uuid.slice(0, 8) + uuid.slice(9, 13)
  within = when > last ? 0 : within + 1
  if (when > last) last = when
  // More in a millisecond than there are numbers: the next one is begun early.
  if (within > 0xfff) [last, within] = [(Number.parseInt(last, 16) + 1).toString(16).padStart(12, '0'), 0]
  return last + (0x7000 + within).toString(16) + uuid.slice(19, 23) + uuid.slice(24)
}

export const systemRandomness: Randomness = {
  id: () => inOrder(crypto().randomUUIDv7()),
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
