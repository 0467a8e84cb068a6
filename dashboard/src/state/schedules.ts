import type { Answer, Ask } from '../api/client.ts'
import { refreshNow, useResource } from './resource.ts'
import type { Resource } from './resource.ts'

const MOST = 200

/** Of a cron expression only the daemon knows what comes, and each instant costs it a search. */
export const COMING = 50

const ALL: Ask<'schedules.list'> = { limit: MOST, next: COMING, state: ['active', 'paused', 'ended'] }
const WAKES = ['schedule.', 'occurrence.']

export const useSchedules = (): Resource<Answer<'schedules.list'>> => useResource('schedules.list', ALL, WAKES)

export const useOccurrences = (): Resource<Answer<'occurrences.list'>> =>
  useResource('occurrences.list', { limit: MOST }, WAKES)

/** For the one who just changed something about them. */
export const refreshSchedules = (): void => refreshNow('schedules.list', 'occurrences.list')
