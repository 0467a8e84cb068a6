import { expect, test } from 'vitest'

import { readConfig } from './config.ts'

const read = (secrets: unknown) => readConfig({ secrets }, 'holdfast.config.json')

test('a secret is declared by where its value is', () => {
  const { secrets } = read({ billing: { env: 'ACCOUNT' }, 'deploy.key': { file: 'keys/deploy' } })
  expect([...(secrets ?? [])]).toEqual([
    ['billing', { env: 'ACCOUNT' }],
    ['deploy.key', { file: 'keys/deploy' }],
  ])
  expect(read({}).secrets).toBeUndefined()
})

test.each([
  [{ billing: 'the value itself' }, 'must be an object'],
  [{ billing: { value: 'x' } }, 'is not a setting'],
  [{ billing: {} }, 'must name one place'],
  [{ billing: { env: 'A', file: 'b' } }, 'must name one place'],
  [{ 'no good name': { env: 'A' } }, 'cannot be the name of a secret'],
])('%j is refused: it %s', (secrets, why) => {
  expect(() => read(secrets)).toThrow(why)
})
