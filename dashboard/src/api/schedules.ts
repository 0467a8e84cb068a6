import { callPath } from './client.ts'

/** Schedules and their occurrences, as the API answers them. */
export interface Schedule {
  readonly id: string
  readonly name: string
  readonly kind: 'job' | 'followup'
  readonly state: 'active' | 'paused' | 'ended' | 'removed'
  readonly reason?: string
  /** `every 10 min`, `0 9 * * 1-5 in Europe/Berlin`. */
  readonly when: string
  readonly target: { readonly kind: string; readonly [field: string]: unknown }
  readonly failures: number
  readonly firings: number
  readonly why?: string
  readonly nextAt?: string
  /** The instants that come next, as far as they are known. */
  readonly coming?: readonly string[]
  readonly createdAt: string
}

export interface Occurrence {
  readonly id?: string
  readonly scheduleId: string
  readonly dueAt: string
  readonly firedAt?: string
  readonly state: 'due' | 'dispatched' | 'succeeded' | 'failed' | 'dropped' | 'skipped'
  readonly reason?: string
  readonly attempts: number
  readonly runId?: string
}

interface Items<T> {
  readonly items: readonly T[]
}

export const listSchedules = () => callPath<Items<Schedule>>('GET', '/schedules?limit=500')
export const listOccurrences = () => callPath<Items<Occurrence>>('GET', '/occurrences?limit=500')

export type ScheduleVerb = 'pause' | 'resume' | 'run-now' | 'remove'
export const actOnSchedule = (id: string, verb: ScheduleVerb) =>
  callPath<unknown>('POST', `/schedules/${encodeURIComponent(id)}/${verb}`, {})
