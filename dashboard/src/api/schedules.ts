import { call } from './client.ts'
import type { Answer } from './client.ts'

/** Schedules and their occurrences, as the API answers them. */
export type Schedule = Answer<'schedules.list'>['items'][number]
export type Rule = Schedule['rule']
export type Occurrence = Answer<'occurrences.list'>['items'][number]

/** Of a cron expression only the daemon knows what comes, and each instant costs it a search. */
const COMING = 50
const MOST = 200

export const listSchedules = () =>
  call('schedules.list', { limit: MOST, next: COMING, state: ['active', 'paused', 'ended'] })
export const listOccurrences = () => call('occurrences.list', { limit: MOST })

export type ScheduleVerb = 'pause' | 'resume' | 'run-now' | 'remove'
export const actOnSchedule = (schedule: string, verb: ScheduleVerb): Promise<unknown> =>
  call(`schedules.${verb}`, { schedule })
