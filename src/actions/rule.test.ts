import { expect, test } from 'vitest'

import type { Action } from './action.ts'
import { judge } from './policy.ts'
import { narrowestRule } from './rule.ts'

const made = (input: unknown, tool = 'run') => narrowestRule({ tool, input } as Action, 'clerk')

test.each([
  [{ argv: ['git', 'status'] }],
  [{ to: 'ann@example.org', text: 'Time to find the node.' }],
  [{ path: 'docs/node.md', lines: [1, 2] }],
  [{}],
])('the narrowest rule is this agent, this tool, exactly these arguments: %j', (input) => {
  const where = Object.entries(input).map(([argument, equals]) => ({ argument, equals }))
  expect(made(input)).toEqual({ rule: { tool: 'run', agent: 'clerk', where, only: true, decision: 'allow' } })
})

test.each<[unknown, unknown, string]>([
  [{}, {}, 'allow'],
  [{}, { target: 'prod', force: true }, 'ask'],
  [{}, { force: undefined }, 'allow'],
  [{}, undefined, 'ask'],
  [{}, null, 'ask'],
  [{}, [], 'ask'],
  [{}, 'prod', 'ask'],
  [{ to: 'landlord' }, { to: 'landlord' }, 'allow'],
  [{ to: 'landlord' }, { to: 'landlord', euros: 90_000 }, 'ask'],
  [{ to: 'landlord' }, { to: 'landlord', euros: null }, 'ask'],
  [{ to: 'landlord' }, JSON.parse('{"to":"landlord","__proto__":{}}'), 'ask'],
  [{ to: 'landlord' }, {}, 'ask'],
  [{ at: { x: 1 } }, { at: { x: 1 } }, 'allow'],
  [{ at: { x: 1 } }, { at: { x: 1, y: 2 } }, 'ask'],
])(
  '"always" is for exactly the arguments that were shown: after %j the call %j gets %s [approvals/bound]',
  (shown, called, decision) => {
    const narrow = made(shown)
    if ('refused' in narrow) throw new Error(narrow.refused)
    const call = { tool: 'run', effect: 'write', agent: 'clerk', input: called } as const
    expect(judge([narrow.rule], call).kind).toBe(decision)
  },
)

test('"always" counts beside a rule that asks for every call of the tool, also for a call without arguments', () => {
  const narrow = made({})
  if ('refused' in narrow) throw new Error(narrow.refused)
  const asks = { tool: 'run', agent: 'clerk', decision: 'ask' } as const
  const call = { tool: 'run', effect: 'write', agent: 'clerk' } as const
  expect(judge([asks, narrow.rule], { ...call, input: {} }).kind).toBe('allow')
  expect(judge([asks, narrow.rule], { ...call, input: { force: true } }).kind).toBe('ask')
})

test.each([
  [{ argv: ['bash', '-c', 'x'] }],
  [{ argv: ['/usr/bin/env', 'git'] }],
  [{ command: 'sudo rm -r /' }],
  [{ command: '  /bin/sh -c x' }],
  [{ steps: [{ run: ['python3.12', 'x.py'] }] }],
  [{ program: 'C:\\Windows\\powershell.exe' }],
  [{ argv: ['curl', 'https://example.org'] }],
  [{ argv: ['npx', 'x'] }],
  ['rm'],
  [{ 'a.b': 1 }],
])('no rule where it would not say what it allows: %j', (input) => {
  expect(made(input)).toMatchObject({ refused: expect.any(String) as string })
})

test.each(['shell', 'parallel_shell', 'http_send', 'http_get', 'delegate'])('nor for the tool %s', (tool) => {
  expect(made({ a: 'b' }, tool)).toMatchObject({ refused: expect.stringContaining(tool) as string })
})
