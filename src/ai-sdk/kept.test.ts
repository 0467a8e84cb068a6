import { APICallError } from 'ai'
import { expect, test } from 'vitest'

import { LIMITS } from '../base/limits.ts'
import { ModelError } from '../model/model-error.ts'
import { sdkErrors } from './errors.ts'
import { keep, revive } from './kept.ts'

test('a result that was never kept, of a probe or a person, comes back as it is, whatever it looks like', () => {
  const results = [
    { $date: 'x' },
    { $date: '2026' },
    { $date: 5 },
    { $url: 'ticket-7' },
    { $url: null },
    { $bytes: 5 },
    { $bytes: 'not base64!' },
    { $plain: 7 },
    { $plain: null },
    { $plain: { a: 1 } },
    { $plain: { $date: 'x' }, more: 1 },
    [{ deep: { $url: '' } }],
  ]
  for (const result of results) {
    expect(revive(result)).toEqual(result)
    expect(revive(JSON.parse(JSON.stringify(keep(result))))).toEqual(result)
  }
  expect(revive(keep({ at: new Date(Number.NaN) }))).toEqual({ at: null })
})

test('of a refusal is kept when to come again and by what name to ask, not whose account it is, and no book', () => {
  const told = { 'retry-after': '3', 'Retry-After-Ms': '3000', 'request-id': 'r', 'x-request-id': 'x' }
  const limits = { 'x-ratelimit-reset': '1', 'anthropic-ratelimit-tokens-remaining': '0' }
  const account = { 'set-cookie': 'session=s', 'anthropic-organization-id': 'o', 'openai-organization': 'o' }
  const message = 'no '.repeat(LIMITS.toldCharacters)
  const refused = new APICallError({
    message,
    url: 'https://model.example/v1',
    requestBodyValues: { prompt: 'p' },
    statusCode: 429,
    responseHeaders: { ...told, ...limits, ...account },
    responseBody: message,
  })
  const error = new ModelError('model/rate-limit', message, { status: 429, cause: refused })
  const kept = JSON.stringify(sdkErrors.keep(error))
  expect(kept.length).toBeLessThan(4 * LIMITS.toldCharacters)
  const again = sdkErrors.revive(JSON.parse(kept)) as APICallError
  expect(again.responseHeaders).toEqual({ ...told, ...limits })
  expect(again.message).toBe(message.slice(0, LIMITS.toldCharacters))
  const other = sdkErrors.keep(new Error(message)) as { message: string }
  expect(other.message).toHaveLength(LIMITS.toldCharacters)
})
