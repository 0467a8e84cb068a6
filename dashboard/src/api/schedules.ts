import { callPath } from './client.ts'

export type Rule =
  | { readonly kind: 'once'; readonly at: string }
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: string }
  | { readonly kind: 'cron'; readonly expression: string; readonly zone: string }

/** Schedules and their occurrences, as the API answers them. */
export interface Schedule {
  readonly id: string
  readonly name: string
  readonly kind: 'job' | 'followup'
  readonly state: 'active' | 'paused' | 'ended' | 'removed'
  readonly reason?: string
  readonly rule: Rule
  readonly target: { readonly kind: string; readonly [field: string]: unknown }
  readonly options?: { readonly why?: string }
  readonly failures: number
  readonly firings: number
  readonly nextAt?: string
  /** The instants that come next, as far as the daemon says them; of a cron expression only it knows. */
  readonly next?: readonly { readonly at: string }[]
  readonly createdAt: string
  readonly updatedAt: string
}

export interface Occurrence {
  readonly id: string
  readonly scheduleId: string
  readonly dueAt: string
  readonly firedAt?: string
  readonly state: 'due' | 'dispatched' | 'succeeded' | 'failed' | 'dropped' | 'skipped'
  readonly reason?: string
  readonly error?: string
  readonly attempts: number
  readonly runId?: string
  /** How many instants in a row this line stands for. */
  readonly instants?: number
}

interface Items<T> {
  readonly items: readonly T[]
}

export const listSchedules = () => callPath<Items<Schedule>>('GET', '/schedules?limit=500')
export const listOccurrences = () => callPath<Items<Occurrence>>('GET', '/occurrences?limit=500')

export type ScheduleVerb = 'pause' | 'resume' | 'run-now' | 'remove'
export const actOnSchedule = (id: string, verb: ScheduleVerb) =>
  callPath<unknown>('POST', `/schedules/${encodeURIComponent(id)}/${verb}`, {})
