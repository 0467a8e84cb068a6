import { randomBytes, randomUUIDv7 } from 'node:crypto'

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
  /** A time-ordered id: neighbours in time are neighbours in an index. Not ordered within a millisecond. */
  id(): string
  /** Unguessable hexadecimal digits. */
  hex(bytes: number): string
  /** In [0, 1): for jitter, never for secrets. */
  fraction(): number
}

export const systemRandomness: Randomness = {
  id: () => randomUUIDv7().replaceAll('-', ''),
  hex: (bytes) => randomBytes(bytes).toString('hex'),
  fraction: () => Math.random(),
}

export const newThreadId = (random: Randomness) => `thr_${random.id()}` as ThreadId
export const newRunId = (random: Randomness) => `run_${random.id()}` as RunId
export const newAttemptId = (random: Randomness) => `att_${random.id()}` as AttemptId
export const newMessageId = (random: Randomness) => `msg_${random.id()}` as MessageId
export const newActionId = (random: Randomness) => `act_${random.id()}` as ActionId
export const newScheduleId = (random: Randomness) => `sch_${random.id()}` as ScheduleId
export const newWorkerId = (random: Randomness) => `wrk_${random.id()}` as WorkerId
