import { describe, expect, onTestFinished, test } from 'vitest'

import { codeOfStatus, errorOfResponse, isRetried, ModelError, parseRetryAfter } from './model-error.ts'

const NOW = Date.UTC(2026, 10, 15, 12, 0, 0)

describe('Retry-After', () => {
  test.each([
    ['seconds', { 'retry-after': '7' }, 7_000],
    ['a part of a second', { 'retry-after': '1.5' }, 1_500],
    ['spaces around it', { 'retry-after': ' 3 ' }, 3_000],
    ['an HTTP date', { 'retry-after': 'Sun, 15 Nov 2026 12:00:30 GMT' }, 30_000],
    ['the date of RFC 850', { 'retry-after': 'Sunday, 15-Nov-26 12:00:05 GMT' }, 5_000],
    ['the date of C, which is GMT too', { 'retry-after': 'Sun Nov 15 12:00:09 2026' }, 9_000],
    ['milliseconds', { 'retry-after-ms': '250' }, 250],
    ['milliseconds, the more exact of both', { 'retry-after-ms': '250', 'retry-after': '1' }, 250],
    ['garbage in the one, sense in the other', { 'retry-after-ms': 'soon', 'retry-after': '1' }, 1_000],
    ['zero in the one, sense in the other', { 'retry-after-ms': '0', 'retry-after': '1' }, 1_000],
    ['any case', { 'Retry-After': '2' }, 2_000],
    ['more than anyone means', { 'retry-after': '99999999999' }, 8 * 86_400_000],
  ])('%s [R6]', (_form, headers, expected) => {
    expect(parseRetryAfter(headers, NOW)).toBe(expected)
    expect(parseRetryAfter(new Headers(headers as Record<string, string>), NOW)).toBe(expected)
  })

  test.each([
    '',
    '   ',
    '0',
    '0.0',
    '-5',
    'soon',
    '1e3',
    '0x10',
    'NaN',
    'Infinity',
    '5 apples',
    '5, 5',
    'soon 2099',
    '2099-01-01T00:00:00Z',
  ])('"%s" says nothing [R6]', (value) => {
    expect(parseRetryAfter({ 'retry-after': value }, NOW)).toBeUndefined()
    expect(parseRetryAfter({ 'retry-after-ms': value }, NOW)).toBeUndefined()
  })

  test('a date without a zone is GMT, wherever this machine stands [R6]', () => {
    const zone = process.env['TZ']
    process.env['TZ'] = 'America/New_York'
    onTestFinished(() => {
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    })
    expect(new Date(NOW).getHours()).toBe(7)
    expect(parseRetryAfter({ 'retry-after': 'Sun Nov 15 12:00:09 2026' }, NOW)).toBe(9_000)
  })

  test('a date that is over, no date, and no header say nothing [R6]', () => {
    expect(parseRetryAfter({ 'retry-after': 'Sun, 15 Nov 2026 11:59:59 GMT' }, NOW)).toBeUndefined()
    expect(parseRetryAfter({ 'retry-after': 'Sun, 99 Nov 2026 12:00:30 GMT' }, NOW)).toBeUndefined()
    expect(parseRetryAfter({}, NOW)).toBeUndefined()
  })
})

test('passing troubles are tried again, requests and credentials that are wrong are not', () => {
  const retried = (status: number) => isRetried(errorOfResponse({ status, headers: {}, message: '' }, NOW))
  const statuses = [400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 529]
  expect(statuses.filter(retried)).toEqual([408, 409, 425, 429, 500, 502, 503, 504, 529])
  expect(isRetried(new ModelError('model/connection', 'reset'))).toBe(true)
  expect(isRetried(new ModelError('model/bad-request', 'no'))).toBe(false)
  expect(isRetried(new ModelError('model/script', 'over'))).toBe(false)
  expect(isRetried(new TypeError('x'))).toBe(false)
})

test('a status has a code that people and programs can tell apart', () => {
  expect([400, 401, 403, 404, 408, 429, 500, 529].map(codeOfStatus)).toEqual([
    'model/bad-request',
    'model/auth',
    'model/auth',
    'model/bad-request',
    'model/overloaded',
    'model/rate-limit',
    'model/overloaded',
    'model/overloaded',
  ])
})

test('an error carries what to do, when, and what was paid [T8]', () => {
  const usage = { inputTokens: 3, outputTokens: 1, costMicrousd: 9 }
  const response = { status: 429, headers: { 'retry-after': '2' }, message: 'slow down' }
  expect(errorOfResponse(response, NOW, { usage })).toMatchObject({
    code: 'model/rate-limit',
    status: 429,
    retryAfterMs: 2_000,
    retry: { afterMs: 2_000 },
    usage,
    remedy: expect.stringContaining('wait'),
    message: expect.stringContaining('slow down'),
  })
})
