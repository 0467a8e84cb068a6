import { expect, test } from 'vitest'

import { modelNames } from './conventions.ts'
import { isWanted } from './wanted.ts'

const SENT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }

test('telemetry is on where it was configured, or where the environment names a collector', () => {
  expect(isWanted(undefined, {})).toBe(false)
  expect(isWanted(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBe(false)
  expect(isWanted(undefined, SENT)).toBe(true)
  expect(isWanted({ content: false }, {})).toBe(true)
})

test('it is off where somebody said so, whatever else is set', () => {
  expect(isWanted(false, SENT)).toBe(false)
  expect(isWanted({ content: true }, { ...SENT, OTEL_SDK_DISABLED: 'true' })).toBe(false)
})

test('a model is named as its provider names it, without the address of a server', () => {
  expect(modelNames('anthropic/claude-sonnet-5')).toEqual({ provider: 'anthropic', model: 'claude-sonnet-5' })
  expect(modelNames('openai-compatible:https://gpu.internal/v1/org/name').model).toBe('v1/org/name')
  expect(modelNames('scripted:./clerk.json')).toEqual({ provider: 'scripted', model: './clerk.json' })
  expect(modelNames('own')).toEqual({ provider: 'own', model: 'own' })
})
