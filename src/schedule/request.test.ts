import { describe, expect, test } from 'vitest'

import { commandOf, newThreadOf, readName, readOptions, readRule, webhookTo } from './request.ts'
import type { OptionsRequest, WhenRequest } from './request.ts'
import { DEFAULT_OPTIONS } from './schedule.ts'

const NOW = Date.UTC(2026, 10, 15)
const place = { now: NOW, zone: 'Europe/Berlin' }

describe('when', () => {
  test('each of the four ways is a rule', () => {
    expect(readRule({ in: '90s' }, place)).toEqual({ kind: 'in', delayMs: 90_000 })
    expect(readRule({ at: '2026-12-01T09:00' }, place)).toEqual({ kind: 'once', at: Date.UTC(2026, 11, 1, 8) })
    expect(readRule({ at: '2026-12-01T09:00', zone: 'UTC' }, place)).toEqual({
      kind: 'once',
      at: Date.UTC(2026, 11, 1, 9),
    })
    expect(readRule({ every: '1h', anchor: new Date(NOW) }, place)).toEqual({
      kind: 'every',
      everyMs: 3_600_000,
      anchor: NOW,
    })
    expect(readRule({ cron: ' 30 2 * * * ' }, place)).toEqual({
      kind: 'cron',
      expression: '30 2 * * *',
      zone: place.zone,
    })
  })

  const wrong: [WhenRequest, string][] = [
    [{}, 'it does not say when'],
    [{ in: '1h', cron: '* * * * *' }, 'in and cron are two answers'],
    [{ in: '0s' }, '"0s" is not a duration'],
    [{ in: 'soon' }, '"soon" is not a duration'],
    [{ in: '99999999999d' }, 'not a'],
    [{ at: 'tomorrow' }, 'is no date with a time'],
    [{ at: new Date(Number.NaN) }, 'not an instant'],
    [{ every: '10ms' }, 'too often'],
    [{ every: '1h', anchor: 'noon' }, 'is no date with a time'],
    [{ in: '1h', anchor: '2026-12-01T09:00' }, 'an anchor is an instant of every'],
    [{ cron: '* * *' }, 'has 3 fields'],
    [{ cron: '61 * * * *' }, 'is no cron expression'],
    [{ cron: '0 0 30 2 *' }, 'never comes'],
    [{ cron: '0 0 * * *', zone: 'Mars/Base' }, '"Mars/Base" is no time zone'],
    [{ at: '2026-12-01T09:00', zone: 'Mars/Base' }, '"Mars/Base" is no time zone'],
  ]
  test.each(wrong)('%j is refused', (when, words) => {
    expect(() => readRule(when, place)).toThrow(words)
  })
})

describe('options', () => {
  const read = (request: OptionsRequest) => readOptions(request, DEFAULT_OPTIONS, 'UTC')

  test('only what is asked for is there, and a retry keeps the rest', () => {
    expect(read({})).toEqual({})
    expect(read({ misfire: 'each:5', retries: 1, maxCostUsd: 0.5, until: '2026-12-01T00:00' })).toEqual({
      misfire: { policy: 'each', limit: 5 },
      retry: { ...DEFAULT_OPTIONS.retry, tries: 1 },
      firingMicrousd: 500_000,
      until: Date.UTC(2026, 11, 1),
    })
    expect(JSON.stringify({ ...DEFAULT_OPTIONS, maxFirings: 3, ...read({ maxFirings: null }) })).not.toContain(
      'maxFirings',
    )
  })

  const wrong: [OptionsRequest, string][] = [
    [{ misfire: 'twice' }, 'no answer to a misfire'],
    [{ misfire: 'each:0' }, 'out of bounds'],
    [{ misfire: 'each:1000000' }, 'out of bounds'],
    [{ grace: 'long' }, 'not a duration'],
    [{ overlap: 'both' as never }, 'no answer to overlap'],
    [{ stopped: 'x' as never }, 'no answer to stopped'],
    [{ retries: 1.5 }, 'retries is no whole number'],
    [{ retries: -1 }, 'retries is no whole number'],
    [{ retryFactor: 0 }, 'retryFactor'],
    [{ retryJitter: 2 }, 'retryJitter'],
    [{ retries: 1_000 }, 'too long'],
    [{ transient: ['Exit 3'] }, 'is no failure of a run'],
    [{ pauseAfter: -1 }, 'pauseAfter'],
    [{ maxFirings: 0 }, 'maxFirings'],
    [{ maxCostUsd: 0 }, 'maxCostUsd'],
    [{ maxCostUsdADay: Number.NaN }, 'maxCostUsdADay'],
    [{ until: 'never' }, 'is no date with a time'],
  ]
  test.each(wrong)('%j is refused', (request, words) => {
    expect(() => read(request)).toThrow(words)
  })
})

test('a name can be typed, and is no id; a target says something', () => {
  expect(readName('nightly-2.b:c')).toBe('nightly-2.b:c')
  for (const name of ['', 'a b', '-x', 'sch_1', 'x'.repeat(300), 'a\nb'])
    expect(() => readName(name), name).toThrow('is no name')
  expect(() => newThreadOf('clerk', '  ')).toThrow('nothing to say')
  expect(() => commandOf({ argv: [], cwd: '/' })).toThrow('there is no command')
  expect(() => webhookTo({ url: 'file:///etc/passwd' })).toThrow('is no address')
  expect(() => webhookTo({ url: 'nonsense' })).toThrow('is no address')
  expect(() => webhookTo({ url: 'https://example.org', method: 'BREW' })).toThrow('no answer to method')
  expect(webhookTo({ url: 'https://example.org' })).toEqual({ kind: 'webhook', url: 'https://example.org/' })
})
