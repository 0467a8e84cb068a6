import { expect, test } from 'vitest'

import { covers, describeRule, ruleProblems } from './policy-check.ts'
import type { PolicyRule } from './policy.ts'

const allow = (more: Partial<PolicyRule> = {}): PolicyRule => ({ decision: 'allow', ...more })
const deny = (more: Partial<PolicyRule> = {}): PolicyRule => ({ decision: 'deny', ...more })
const where = (...conditions: NonNullable<PolicyRule['where']>) => ({ where: conditions })

test.each<[string, PolicyRule, PolicyRule, boolean]>([
  ['everything covers a tool', allow(), allow({ tool: 'a' }), true],
  ['a tool does not cover everything', allow({ tool: 'a' }), allow(), false],
  ['a server covers its tools', allow({ tool: 'files__*' }), allow({ tool: 'files__read' }), true],
  ['a value covers nothing but itself', allow(where({ argument: 'n', equals: 1 })), allow(), false],
  [
    'a prefix covers a value',
    allow(where({ argument: 'to', prefix: 'a' })),
    allow(where({ argument: 'to', equals: 'ab' })),
    true,
  ],
  [
    'a glob covers values',
    allow(where({ argument: 'p', path: 'src/**' })),
    allow(where({ argument: 'p', oneOf: ['src/a', 'src/b/c'] })),
    true,
  ],
  [
    'not one that climbs out',
    allow(where({ argument: 'p', path: 'src/**' })),
    allow(where({ argument: 'p', oneOf: ['src/a', 'src/../b'] })),
    false,
  ],
  [
    'an allow does not cover all that a deny means',
    allow(where({ argument: 'p', path: 'src/**' })),
    deny(where({ argument: 'p', path: 'src/**' })),
    false,
  ],
  [
    'a deny covers what is allowed by the same words',
    deny(where({ argument: 'p', path: 'src/**' })),
    allow(where({ argument: 'p', path: 'src/**' })),
    true,
  ],
  ['another argument', allow(where({ argument: 'a', equals: 1 })), allow(where({ argument: 'b', equals: 1 })), false],
  [
    'fewer words',
    allow(where({ argument: 'argv', words: ['git'] })),
    allow(where({ argument: 'argv', words: ['git', 'push'] })),
    true,
  ],
  [
    'exactly these arguments does not cover these and any others',
    allow({ only: true, ...where({ argument: 'a', equals: 1 }) }),
    allow(where({ argument: 'a', equals: 1 }, { argument: 'b', equals: 1 })),
    false,
  ],
  [
    'nor exactly these and one more',
    allow({ only: true, ...where({ argument: 'a', equals: 1 }) }),
    allow({ only: true, ...where({ argument: 'a', equals: 1 }, { argument: 'b', equals: 1 }) }),
    false,
  ],
  [
    'exactly these arguments covers exactly these',
    allow({ only: true, ...where({ argument: 'a', prefix: 'x' }) }),
    allow({ only: true, ...where({ argument: 'a', equals: 'xy' }) }),
    true,
  ],
  [
    'these and any others covers exactly these',
    allow(where({ argument: 'a', equals: 1 })),
    allow({ only: true, ...where({ argument: 'a', equals: 1 }) }),
    true,
  ],
])('%s', (_, wide, narrow, expected) => {
  expect(covers(wide, narrow)).toBe(expected)
})

test.each<[string, readonly PolicyRule[], readonly string[]]>([
  ['nothing is wrong', [allow({ tool: 'a' }), deny({ tool: 'b' })], []],
  ['a narrower allow is no shadow', [{ decision: 'ask' }, allow({ tool: 'a' })], []],
  ['a deny shadows what it covers', [allow({ tool: 'a' }), deny()], ['shadowed 0 by 1']],
  ['the opposite of the same', [allow({ tool: 'a' }), { tool: 'a', decision: 'ask' }], ['contradiction 0 by 1']],
  ['the same twice', [allow({ tool: 'a' }), allow({ tool: 'a' })], ['repeated 1 by 0']],
  ['a deny inside of a deny', [deny(), deny({ tool: 'a' })], ['repeated 1 by 0']],
  [
    'a deny shadows what is the same to it',
    [allow(where({ argument: 'p', equals: '/srv/Secrets/.env' })), deny(where({ argument: 'p', path: 'secrets/**' }))],
    ['shadowed 0 by 1'],
  ],
  [
    'the opposite of the same condition',
    [allow(where({ argument: 'p', path: 'a/**' })), { decision: 'ask', ...where({ argument: 'p', path: 'a/**' }) }],
    ['contradiction 0 by 1'],
  ],
  [
    'the same to a deny, in other letters',
    [deny(where({ argument: 'to', equals: 'Ann' })), deny(where({ argument: 'to', equals: 'ann' }))],
    ['repeated 1 by 0'],
  ],
  [
    'not the same to an allow',
    [allow(where({ argument: 'to', equals: 'Ann' })), allow(where({ argument: 'to', equals: 'ann' }))],
    [],
  ],
])('%s', (_, rules, expected) => {
  expect(ruleProblems(rules).map(({ kind, rule, by }) => `${kind} ${rule} by ${by}`)).toEqual(expected)
})

test('a rule in words', () => {
  const rule = allow({ tool: 'mail', agent: 'clerk', thread: 't', ...where({ argument: 'to', equals: 'ann' }) })
  expect(describeRule(rule)).toBe('allow mail of clerk in t where to is "ann"')
})

test('a rule for exactly these arguments in words', () => {
  const rule = allow({ tool: 'pay', agent: 'clerk', only: true, ...where({ argument: 'to', equals: 'ann' }) })
  expect(describeRule(rule)).toBe('allow pay of clerk where to is "ann" and there is no other argument')
  expect(describeRule({ ...rule, where: [] })).toBe('allow pay of clerk without arguments')
})
