import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { checkRule, countInstants, describeRule, lastInstants, nextAfter, nextInstants } from './rule.ts'
import type { Rule } from './rule.ts'

const cron = (expression: string, zone = 'UTC'): Rule => ({ kind: 'cron', expression, zone })
const at = (iso: string) => Date.parse(iso)
const next = (rule: Rule, after: string, count: number) =>
  nextInstants(rule, at(after), count).map((instant) => new Date(instant).toISOString().replace(':00.000Z', 'Z'))

describe('a fixed time in a night that leaves it out comes at the end of the gap, once', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-03-28T02:00:00Z', ['2026-03-29T01:00Z', '2026-03-30T00:30Z']],
    ['America/New_York', '30 2 * * *', '2026-03-07T08:00:00Z', ['2026-03-08T07:00Z', '2026-03-09T06:30Z']],
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-02T16:00:00Z', ['2026-10-03T15:30Z', '2026-10-04T15:15Z']],
  ])('%s', (zone, expression, after, expected) => {
    expect(next(cron(expression, zone), after, 2)).toEqual(expected)
  })
})

describe('a fixed time that a night has twice comes the first time', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00:00Z', ['2026-10-25T00:30Z', '2026-10-26T01:30Z']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00:00Z', ['2026-11-01T05:30Z', '2026-11-02T06:30Z']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T12:00:00Z', ['2026-04-04T14:45Z', '2026-04-05T15:15Z']],
  ])('%s', (zone, expression, after, expected) => {
    expect(next(cron(expression, zone), after, 2)).toEqual(expected)
  })
})

describe('a pattern with a step goes on through both nights without a hole and without a repeat', () => {
  test.each([
    ['Europe/Berlin', '2026-03-29T00:15:00Z'],
    ['Europe/Berlin', '2026-10-25T00:15:00Z'],
    ['America/New_York', '2026-03-08T06:15:00Z'],
    ['America/New_York', '2026-11-01T05:15:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T15:15:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T14:45:00Z'],
  ])('%s after %s', (zone, after) => {
    const instants = nextInstants(cron('*/30 * * * *', zone), at(after), 8)
    const gaps = instants.slice(1).map((instant, index) => instant - instants[index]!)
    expect(gaps).toEqual(Array(7).fill(30 * 60_000))
  })
})

test('lists and ranges follow the clock on the wall: what a night leaves out does not come, what it has twice comes twice', () => {
  for (const hours of ['0,30 2', '*/30 2', '0-30/30 2']) {
    const rule = cron(`${hours} * * *`, 'Europe/Berlin')
    expect(next(rule, '2026-03-28T12:00:00Z', 2)).toEqual(['2026-03-30T00:00Z', '2026-03-30T00:30Z'])
    expect(next(rule, '2026-10-24T12:00:00Z', 5)).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
      '2026-10-26T01:00Z',
    ])
  }
})

test('five fields, six with seconds first, and names', () => {
  expect(next(cron('30 2 * * 1-5'), '2026-01-02T03:00:00Z', 2)).toEqual(['2026-01-05T02:30Z', '2026-01-06T02:30Z'])
  expect(nextInstants(cron('*/15 * * * * *'), at('2026-01-01T00:00:00Z'), 2)).toEqual([
    at('2026-01-01T00:00:15Z'),
    at('2026-01-01T00:00:30Z'),
  ])
  expect(next(cron('@daily', 'Europe/Berlin'), '2026-01-01T12:00:00Z', 1)).toEqual(['2026-01-01T23:00Z'])
  expect(next(cron('0 0 29 2 *'), '2026-01-01T00:00:00Z', 2)).toEqual(['2028-02-29T00:00Z', '2032-02-29T00:00Z'])
})

test('what says nothing or nonsense is refused, in words that say what to write', () => {
  for (const [rule, words] of [
    [cron('0 0 31 2 *'), /never comes/],
    [cron('61 * * * *'), /no cron expression/],
    [cron('* * * *'), /has 4 fields/],
    [cron('* * * * * * *'), /has 7 fields/],
    [cron('@sometimes'), /no cron expression/],
    [cron('* * * * *', 'Mars/Olympus'), /no time zone/],
    [{ kind: 'every', everyMs: 10, anchor: 0 }, /too often/],
    [{ kind: 'every', everyMs: Number.NaN, anchor: 0 }, /not a number of milliseconds/],
    [{ kind: 'every', everyMs: 1_000.5, anchor: 0 }, /not a number of milliseconds/],
    [{ kind: 'once', at: Number.NaN }, /not an instant/],
    [{ kind: 'once', at: 9e15 }, /not an instant/],
  ] as const)
    expect(() => checkRule(rule), JSON.stringify(rule)).toThrow(words)
  for (const rule of [cron('@hourly'), cron('0 0 29 2 *'), { kind: 'every', everyMs: 1_000, anchor: 0 }] as const)
    expect(() => checkRule(rule)).not.toThrow()
})

test('every keeps its distance to its anchor, before it and after it', () => {
  const rule: Rule = { kind: 'every', everyMs: 1_000, anchor: 10_500 }
  expect([0, 10_499, 10_500, 10_501, 11_500].map((instant) => nextAfter(rule, instant))).toEqual([
    10_500, 10_500, 11_500, 11_500, 12_500,
  ])
  expect(lastInstants(rule, 10_500, 14_000, 2)).toEqual([12_500, 13_500])
  expect(lastInstants(rule, 10_500, 10_600, 2)).toEqual([10_500])
  expect(countInstants(rule, 10_500, 13_500)).toBe(4)
  expect(nextAfter({ kind: 'once', at: 5 }, 4)).toBe(5)
  expect(nextAfter({ kind: 'once', at: 5 }, 5)).toBeUndefined()
})

test('a rule is said as one would say it', () => {
  expect(
    [cron('@daily', 'Europe/Berlin'), { kind: 'every', everyMs: 90_000, anchor: 0 } as const].map(describeRule),
  ).toEqual(['cron "@daily" in Europe/Berlin', 'every 90s'])
})

const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'Pacific/Apia']
const field = (most: number) =>
  fc.oneof(
    fc.constant('*'),
    fc.integer({ min: 0, max: most }).map(String),
    fc.integer({ min: 2, max: 20 }).map((step) => `*/${step}`),
  )
const anyCron = fc
  .tuple(field(59), field(23), fc.constantFrom('*', '1', '15', '*/2'), fc.constantFrom(...ZONES))
  .map(([minute, hour, day, zone]) => cron(`${minute} ${hour} ${day} * *`, zone))
/** Around the nights in which clocks change, and anywhere else. */
const anyInstant = fc
  .oneof(
    fc.constantFrom('2026-03-29T01:00Z', '2026-10-25T01:00Z', '2026-03-08T07:00Z', '2026-11-01T06:00Z'),
    fc.constantFrom('2026-10-03T15:30Z', '2026-04-04T15:00Z', '2026-06-01T00:00Z'),
  )
  .chain((iso) => fc.integer({ min: -86_400_000, max: 86_400_000 }).map((ms) => at(iso) + ms))

test('looking back from any instant sees the very instants that looking ahead saw, in every zone and night', () => {
  fc.assert(
    fc.property(
      anyCron,
      anyInstant,
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 0, max: 999 }),
      (rule, from, n, ms) => {
        const ahead = nextInstants(rule, from, n)
        const [first, last] = [ahead[0]!, ahead.at(-1)!]
        expect(ahead.every((instant, index) => instant > (ahead[index - 1] ?? from))).toBe(true)
        for (let count = 1; count <= n; count += 1)
          expect(lastInstants(rule, first, last + ms, count)).toEqual(ahead.slice(-count))
        expect(countInstants(rule, first, last)).toBe(n)
        if (n > 1) expect(lastInstants(rule, first, last - 1, 1)).toEqual([ahead.at(-2)])
      },
    ),
    { numRuns: 150 },
  )
})
