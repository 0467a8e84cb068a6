import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { asProblem } from '../api/client.ts'
import type { Problem } from '../api/client.ts'
import { listOccurrences, listSchedules } from '../api/schedules.ts'
import type { Occurrence, Schedule } from '../api/schedules.ts'
import { onEvent, onOpen } from './live.ts'

export const schedules = signal<readonly Schedule[] | undefined>(undefined)
export const occurrences = signal<readonly Occurrence[]>([])
export const scheduleProblem = signal<Problem | undefined>(undefined)

export async function readSchedules(): Promise<void> {
  try {
    const [all, past] = await Promise.all([listSchedules(), listOccurrences()])
    schedules.value = all.items
    occurrences.value = past.items
    scheduleProblem.value = undefined
  } catch (error) {
    scheduleProblem.value = asProblem(error)
    schedules.value ??= []
  }
}

/** Kept fresh as long as somebody looks. */
export function useSchedules(): void {
  useEffect(() => {
    let timer = 0
    void readSchedules()
    const stopOpening = onOpen((anew) => (anew || scheduleProblem.value !== undefined) && void readSchedules())
    const stop = onEvent(({ type }) => {
      if (!/^(schedule|occurrence)\./.test(type) || timer !== 0) return
      timer = window.setTimeout(() => {
        timer = 0
        void readSchedules()
      }, 300)
    })
    return () => {
      stop()
      stopOpening()
      clearTimeout(timer)
    }
  }, [])
}
