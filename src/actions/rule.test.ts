import { expect, test } from 'vitest'

import type { Action } from './action.ts'
import { narrowestRule } from './rule.ts'

const made = (input: unknown, tool = 'run') => narrowestRule({ tool, input } as Action, 'clerk')

test.each([
  [{ argv: ['git', 'status'] }],
  [{ to: 'ann@example.org', text: 'Time to find the node.' }],
  [{ path: 'docs/node.md', lines: [1, 2] }],
])('the narrowest rule is this agent, this tool, exactly these arguments: %j', (input) => {
  const where = Object.entries(input).map(([argument, equals]) => ({ argument, equals }))
  expect(made(input)).toEqual({ rule: { tool: 'run', agent: 'clerk', where, decision: 'allow' } })
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
