import { describe, expect, test } from 'vitest'

import type { Schedule } from '../../dashboard/src/api/shapes.ts'
import { cutShort, daysAround } from '../../dashboard/src/look/calendar.ts'
import { scaleOf } from '../../dashboard/src/look/timeline.ts'
import { brief, shortId } from '../../dashboard/src/look/words.ts'

const MINUTE = 60_000
/** In the middle of a day, wherever the machine thinks that it is. */
const NOON = new Date(2026, 5, 10, 12).getTime()

const schedule = (more: object): Schedule =>
  ({ id: 'sch_1', name: 'often', state: 'active', options: {}, ...more }) as unknown as Schedule

const often = (more: object = {}) =>
  schedule({ rule: { kind: 'every', everyMs: 10 * MINUTE }, nextAt: new Date(NOON).toISOString(), ...more })

const countsOf = (shown: Schedule, weeks = 0) =>
  daysAround(NOON, weeks, [shown], []).map(({ things }) => things.reduce((sum, { count }) => sum + count, 0))

describe('the calendar', () => {
  test('a job of every ten minutes is on each day that comes, with how often, however far one looks', () => {
    const counts = countsOf(often())
    const today = counts.findIndex((count) => count > 0)
    expect(counts[today]).toBe(72)
    expect(new Set(counts.slice(today + 1))).toEqual(new Set([144]))
    expect(new Set(countsOf(often(), 8))).toEqual(new Set([144]))
  })

  test('one that ends is there until it does', () => {
    const counts = countsOf(often({ options: { until: new Date(NOON + 30 * MINUTE).toISOString() } }))
    expect(counts.filter((count) => count > 0)).toEqual([4])
  })

  test('where the daemon told of fewer than there are, that is said', () => {
    const next = Array.from({ length: 50 }, (_, index) => ({ at: new Date(NOON + index * 60 * MINUTE).toISOString() }))
    const hourly = schedule({ rule: { kind: 'cron', expression: '0 * * * *', zone: 'UTC' }, next })
    expect(cutShort(NOON, 0, [hourly, often()], 50)).toEqual([hourly])
    expect(cutShort(NOON, 0, [schedule({ ...hourly, next: next.slice(0, 3) })], 50)).toEqual([])
    const weekly = next.map((_, index) => ({ at: new Date(NOON + index * 7 * 1440 * MINUTE).toISOString() }))
    expect(cutShort(NOON, 0, [schedule({ ...hourly, next: weekly })], 50)).toEqual([])
  })
})

test('an id of ours is told by its end; a name that somebody gave is what it is', () => {
  expect(shortId('run_01a1e358a9f47000ad487a1532ea3112')).toBe('run_32ea3112')
  for (const name of ['calls:breakfast', 'ticket 4711 of Ada', 'a_name_with_lines_in_it'])
    expect(shortId(name)).toBe(name)
})

test('an input that is nothing is not said to be something', () => {
  expect(brief(null)).toBe('')
  expect(brief({ to: 'Ada', at: null })).toBe('Ada · null')
})

test('each word above a timeline has room for itself', () => {
  const bar = { key: 'a', kind: 'model', label: '', note: '', from: 0, to: 61_000, open: false } as const
  for (const most of [2, 5]) {
    const { ticks } = scaleOf([bar], most)
    expect(ticks.length).toBeGreaterThan(1)
    expect(ticks.length).toBeLessThanOrEqual(most)
    expect(Math.max(...ticks.map(({ place }) => place))).toBeLessThan(0.9)
  }
})
