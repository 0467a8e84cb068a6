import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { HoldfastError } from '../base/errors.ts'
import { parseConfig, readConfig } from './config.ts'

const agent = (written: object) => readConfig({ agents: { coder: written } }, 'c.json').agents.get('coder')

function wrong(written: object): string {
  try {
    agent(written)
  } catch (error) {
    if (error instanceof HoldfastError) return error.message
    throw error
  }
  throw new Error('nothing was wrong')
}

test('a client needs no more than its name', () => {
  expect(agent({ client: 'claude' })).toEqual({
    kind: 'command',
    command: ['claude'],
    env: [],
    client: { name: 'claude', args: [] },
  })
})

test('what is said about a client is read', () => {
  const written = {
    client: 'codex',
    program: './codex',
    model: 'gpt-5.5',
    permissions: 'edits',
    args: ['-c', 'model_reasoning_effort=high'],
    folder: 'site',
    env: ['PROXY'],
    timeout: '30m',
  }
  expect(agent(written)).toEqual({
    kind: 'command',
    command: ['./codex'],
    folder: 'site',
    env: ['PROXY'],
    timeoutMs: 1_800_000,
    client: {
      name: 'codex',
      model: 'gpt-5.5',
      permissions: 'edits',
      args: ['-c', 'model_reasoning_effort=high'],
    },
  })
})

test('the example of the documentation is read', () => {
  const text = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8')
  const example = /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  const { agents } = parseConfig(example, 'docs/clients.md')
  expect([...agents.values()].map((each) => each.kind === 'command' && each.client?.name)).toEqual([
    'claude',
    'codex',
    'gemini',
  ])
})

test.each([
  [{ client: 'cursor' }, '"agents.coder.client" must be "claude" or "codex" or "gemini"'],
  [{ client: 'claude', permissions: 'edit' }, '"agents.coder.permissions" must be "read" or "edits" or "all"'],
  [{ client: 'claude', model: '--dangerously-skip-permissions' }, '"agents.coder.model" is not the name of a model'],
  [{ client: 'claude', args: ['--resume', 'x'] }, '"agents.coder.args[0]" is set by Holdfast for "claude"'],
  [{ client: 'gemini', args: ['-o=json'] }, '"agents.coder.args[0]" is set by Holdfast for "gemini"'],
  [{ client: 'claude', command: ['claude'] }, '"agents.coder.command" is not for agents with a client'],
  [{ client: 'claude', tools: ['shell'] }, '"agents.coder.tools" is not for agents with a client'],
  [{ client: 'claude', folder: 7 }, '"agents.coder.folder" must be a text'],
  [{ command: ['claude'], permissions: 'all' }, '"agents.coder.permissions" is for agents with a client'],
  [{ model: 'openai/gpt-5', args: ['x'] }, '"agents.coder.args" is for agents with a client'],
])('%j is refused: %s', (written, words) => {
  expect(wrong(written)).toContain(words)
})
