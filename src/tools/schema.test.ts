import { expect, test } from 'vitest'
import { TOOL_LIMITS } from './limits.ts'
import { schemaProblem, validateInput } from './schema.ts'

const LEDGER = {
  type: 'object',
  properties: {
    entry: { type: 'string', minLength: 2, maxLength: 5, pattern: '^[a-z]+$' },
    amount: { type: 'integer', minimum: 1, maximum: 9 },
    kind: { enum: ['credit', 'debit'] },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    to: { anyOf: [{ type: 'string' }, { type: 'object', required: ['name'] }] },
    note: { type: ['string', 'null'] },
  },
  required: ['entry'],
  additionalProperties: false,
}

const wrong = (input: unknown, schema = LEDGER as object) => {
  const answer = validateInput(schema as Readonly<Record<string, unknown>>, input)
  return 'error' in answer ? answer.error : 'nothing'
}

test('what fits is passed on as it is', () => {
  const input = { entry: 'abc', amount: 3, kind: 'debit', tags: ['x'], to: { name: 'n' }, note: null }
  expect(validateInput(LEDGER, input)).toEqual({ input })
})

test.each([
  [{}, 'entry: is required'],
  [{ entry: 7 }, 'entry: must be a string, not a number'],
  [{ entry: 'a' }, 'entry: must have at least 2 characters'],
  [{ entry: 'abcdef' }, 'entry: must have at most 5 characters'],
  [{ entry: 'ABC' }, 'entry: must match the pattern ^[a-z]+$'],
  [{ entry: 'abc', amount: 1.5 }, 'amount: must be a whole number, not a number'],
  [{ entry: 'abc', amount: 0 }, 'amount: must be at least 1'],
  [{ entry: 'abc', amount: 10 }, 'amount: must be at most 9'],
  [{ entry: 'abc', kind: 'gift' }, 'kind: must be "credit" or "debit"'],
  [{ entry: 'abc', tags: ['a', 1] }, 'tags[1]: must be a string, not a number'],
  [{ entry: 'abc', tags: ['a', 'b', 'c'] }, 'tags: must have at most 2 entries'],
  [{ entry: 'abc', note: 1 }, 'note: must be a string or null, not a number'],
  [{ entry: 'abc', to: 3 }, 'to: fits none of the 2 allowed forms'],
  [{ entry: 'abc', entri: 1 }, 'entri: is not an argument; known are entry, amount'],
  ['abc', 'the arguments: must be an object, not a string'],
  [null, 'the arguments: must be an object, not null'],
  [[], 'the arguments: must be an object, not an array'],
])('%j is refused in words that name the path', (input, words) => {
  expect(wrong(input)).toContain(words)
})

test('every mistake is told at once', () => {
  expect(wrong({ amount: 0, kind: 'x' }).split('\n')).toHaveLength(3)
})

test('a property named like one of every object is an argument like any other', () => {
  const schema = { type: 'object', properties: {}, required: ['constructor', '__proto__'], additionalProperties: false }
  expect(wrong({}, schema)).toBe('constructor: is required\n__proto__: is required')
  expect(wrong(JSON.parse('{"toString":1,"constructor":1,"__proto__":1}'), schema)).toContain('toString: is not an')
})

test('unknown keywords are ignored', () => {
  expect(wrong({ when: 'x' }, { type: 'object', properties: { when: { format: 'date', type: 'string' } } })).toBe(
    'nothing',
  )
})

test('gigantic and unspeakable arguments are refused in words', () => {
  const size = TOOL_LIMITS.inputBytes
  expect(wrong({ entry: 'x'.repeat(size) }, { type: 'object' })).toContain(`at most ${size}`)
  expect(wrong({ entry: 'x'.repeat(size - 20) }, { type: 'object' })).toBe('nothing')
  expect(wrong({ entry: '\ud800' }, { type: 'object' })).toContain('cannot be written as JSON')
})

test.each([
  [{ type: 'strnig' }, 'type: "strnig" is not a type of JSON'],
  [{ type: 'x'.repeat(50_000) }, `type: "${'x'.repeat(99)}… is not a type of JSON`],
  [{ type: 'object', properties: { a: { pattern: '(' } } }, 'a.pattern: is not a regular expression'],
  [{ anyOf: [{ type: 'string' }, 3] }, 'anyOf[1]: must be a JSON Schema'],
  [7, 'the arguments: must be a JSON Schema'],
])('a schema that is none is found before a call meets it: %j', (schema, words) => {
  expect(schemaProblem(schema)).toContain(words)
})
