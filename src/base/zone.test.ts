import { expect, test } from 'vitest'

import { checkZone, localTime, parseInstant } from './zone.ts'

const read = (text: string, zone = 'Europe/Berlin') => new Date(parseInstant(text, zone).at).toISOString()

test('an instant with an offset is that instant, one without is what the clocks of the zone show', () => {
  expect(read('2026-12-01T09:00Z')).toBe('2026-12-01T09:00:00.000Z')
  expect(read('2026-12-01 09:00:30.5+05:30')).toBe('2026-12-01T03:30:30.500Z')
  expect(read('2026-12-01T09:00-08')).toBe('2026-12-01T17:00:00.000Z')
  expect(read('2026-12-01T09:00')).toBe('2026-12-01T08:00:00.000Z')
  expect(read('2026-07-01T09:00')).toBe('2026-07-01T07:00:00.000Z')
  expect(parseInstant('2026-12-01T09:00', 'UTC').isLocal).toBe(true)
  expect(parseInstant('2026-12-01T09:00Z', 'UTC').isLocal).toBe(false)
})

test('of a time that comes twice the first is meant, one that a night leaves out is refused', () => {
  expect(read('2026-10-25T02:30')).toBe('2026-10-25T00:30:00.000Z')
  expect(read('2026-10-25T03:00')).toBe('2026-10-25T02:00:00.000Z')
  expect(read('2026-03-29T03:00')).toBe('2026-03-29T01:00:00.000Z')
  expect(() => read('2026-03-29T02:30')).toThrow('there is no 2026-03-29T02:30 in Europe/Berlin')
  expect(() => read('2011-12-30T12:00', 'Pacific/Apia')).toThrow('there is no')
})

test('what is no instant is refused, also days that no month has', () => {
  for (const nonsense of [
    '',
    'tomorrow',
    '2026-12-01',
    '2026-02-30T10:00',
    '2026-13-01T10:00',
    '2026-12-01T24:00',
    '2026-12-01T10:60',
    '2026-12-01T10:00+25:00',
    '1764579600',
    '12/01/2026 10:00',
  ]) {
    expect(() => read(nonsense), nonsense).toThrow('is no date with a time')
  }
})

test('a local time says its offset', () => {
  expect(localTime(Date.UTC(2026, 2, 29, 1), 'Europe/Berlin')).toBe('2026-03-29T03:00:00+02:00')
  expect(localTime(Date.UTC(2026, 0, 1), 'America/St_Johns')).toBe('2025-12-31T20:30:00-03:30')
  expect(localTime(0, 'UTC')).toBe('1970-01-01T00:00:00+00:00')
  expect(() => checkZone('Mars/Base')).toThrow('"Mars/Base" is no time zone')
})
