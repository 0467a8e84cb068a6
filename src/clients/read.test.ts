import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import type { Client } from '../sessions/session.ts'
import { failureOf } from './failure.ts'
import { PRESETS } from './preset.ts'
import type { ClientTurn } from './turn.ts'

/** What Claude Code 2.1.325, Codex 0.166 and Gemini CLI 0.61 printed against a scripted model, without what nobody reads. */
const recorded = (name: string) =>
  readFileSync(new URL(`../../test/clients/fixtures/${name}.jsonl`, import.meta.url), 'utf8')

const read = (name: string, stdout = recorded(name), stderr = ''): ClientTurn =>
  PRESETS[name.slice(0, name.indexOf('-')) as Client].read({ stdout, stderr })

test('a turn of Claude Code is read into steps, reply, tokens of all its models and its own figure of the cost', () => {
  expect(read('claude-tools')).toEqual({
    sessionId: '11111111-2222-4333-8444-555555555551',
    model: 'claude-opus-5-5',
    reply: 'all done',
    steps: [
      {
        text: 'let me look',
        calls: [
          {
            id: 'toolu_1a',
            tool: 'Bash',
            effect: 'write',
            input: { command: 'echo hi', description: 'x' },
            state: 'done',
            result: 'hi',
          },
          {
            id: 'toolu_1b',
            tool: 'Read',
            effect: 'read',
            input: { file_path: '/nonexistent' },
            state: 'refused',
            error: expect.stringContaining("you haven't granted it yet") as string,
          },
        ],
      },
    ],
    tokens: { input: 200, cacheRead: 100, cacheWrite: 60, output: 40 },
    costUsd: expect.closeTo(0.00192) as number,
    sessionCostUsd: expect.closeTo(0.00192) as number,
    isOver: true,
    isGone: false,
    strays: '',
  })
})

test('of a resumed Claude Code, whose total is that of the session, the turn alone is counted', () => {
  const { tokens, costUsd, sessionCostUsd } = read('claude-resume')
  expect(tokens).toEqual({ input: 100, cacheRead: 50, cacheWrite: 30, output: 20 })
  expect([costUsd, sessionCostUsd]).toEqual([expect.closeTo(0.00096), expect.closeTo(0.00288)])
})

test('a turn of Codex is read; its numbers are those of the whole session', () => {
  const turn = read('codex-tools')
  expect(turn).toMatchObject({ reply: 'all done', isOver: true, isGone: false })
  expect(turn.sessionId).toMatch(/^[0-9a-f-]{36}$/)
  expect(turn.steps).toEqual([
    {
      text: 'let me look',
      calls: [
        {
          id: 'item_2',
          tool: 'command_execution',
          effect: 'write',
          input: { command: "/bin/bash -lc 'echo hi; exit 3'" },
          state: 'done',
          result: { exitCode: 3, output: 'hi\n' },
        },
      ],
    },
  ])
  expect(turn.sessionTokens).toEqual({ input: 120, cacheRead: 80, cacheWrite: 0, output: 40 })
  expect(read('codex-resume').sessionTokens).toEqual({ input: 180, cacheRead: 120, cacheWrite: 0, output: 60 })
})

test('a turn of Gemini CLI is read: a tool that failed was carried out, and says so', () => {
  const turn = read('gemini-tools')
  expect(turn).toMatchObject({ model: 'gemini-2.5-flash', reply: 'all done', isOver: true })
  expect(turn.steps).toMatchObject([
    {
      text: 'let me look',
      calls: [
        { tool: 'list_directory', effect: 'read', state: 'done', result: 'Directory is empty.' },
        { tool: 'read_file', state: 'done', result: { error: 'File not found.', type: 'file_not_found' } },
      ],
    },
  ])
  expect(turn.tokens).toEqual({ input: 120, cacheRead: 80, cacheWrite: 0, output: 50 })
})

test.each([
  ['claude-nologin', 'auth', 'Not logged in'],
  ['claude-rate', 'model', 'send the message again later'],
  ['claude-big', 'model', 'begin a new thread'],
  ['claude-max', 'budget', 'Reached maximum number of turns (2)'],
  ['codex-auth', 'auth', '401 Unauthorized'],
  ['codex-rate', 'model', 'send the message again later'],
  ['codex-big', 'model', 'begin a new thread'],
  ['gemini-auth', 'auth', 'API key not valid'],
] as const)('the failure of %s has the code %s and says what to do', (name, code, words) => {
  const { failure } = read(name)
  expect(failure).toMatchObject({ code })
  expect(failure?.error).toContain(words)
})

test('what fits no known trouble is the failure of the model, in the words of the client', () => {
  expect(failureOf({ text: 'the sky fell', status: 500 })).toEqual({ code: 'model', error: 'the sky fell' })
  expect(failureOf({ text: '', kind: 'odd' })).toEqual({ code: 'model', error: 'odd' })
})

test.each([
  ['claude-gone', '', recorded('claude-gone')],
  ['codex-gone', 'Error: thread/resume: thread/resume failed: no rollout found for thread id 1 (code -32600)', ''],
  ['gemini-gone', 'Error resuming session: Invalid session identifier "1".', ''],
  ['gemini-gone', 'Error resuming session: No previous sessions found for this project.', ''],
])('%s: a session that cannot be found is told from every other failure', (name, stderr, stdout) => {
  expect(read(name, stdout, stderr)).toMatchObject({ isGone: true })
  expect(read(name, stdout.replaceAll('No conversation', 'Some trouble'), 'it fell over')).toMatchObject({
    isGone: false,
  })
})

test('Gemini without an account says so on standard error alone', () => {
  const stderr = 'Please set an Auth method in your settings.json or specify one of the following'
  expect(read('gemini-none', '', stderr)).toMatchObject({ failure: { code: 'auth' }, isOver: false })
})

test('a Claude Code that is stopped while it tries again says what the trouble was', () => {
  expect(read('claude-auth')).toMatchObject({ trouble: 'authentication_failed (401), after 2 tries', isOver: false })
})

test.each(['claude-tools', 'codex-tools', 'gemini-tools'])(
  '%s cut off at any byte is read as far as it goes, and nothing of it is lost or thrown',
  (name) => {
    const whole = recorded(name)
    for (let length = 0; length <= whole.length; length += 1) {
      const { strays, isOver } = read(name, whole.slice(0, length))
      const cut = whole.slice(0, length)
      const last = cut.slice(cut.lastIndexOf('\n') + 1)
      const isWhole =
        last.trim() === '' ||
        (last.endsWith('}') && last.length === whole.split('\n').find((line) => line.startsWith(last))?.length)
      expect(strays).toBe(isWhole ? '' : last)
      if (length < whole.length - 1) expect(isOver).toBe(false)
    }
  },
)

test.each(['claude-x', 'codex-x', 'gemini-x'])('%s: what is not its language is kept as text', (name) => {
  const stdout =
    'panic: out of cheese\n[1,2]\nnull\n{"no":"type"}\n{"type":"assistant","message":7}\n{"type":"item.completed"}\n'
  const turn = read(name, stdout)
  expect(turn.strays).toBe('panic: out of cheese\n[1,2]\nnull\n{"no":"type"}')
  expect(turn).toMatchObject({ steps: [], isOver: false, isGone: false })
  expect(read(name, '')).toMatchObject({ steps: [], strays: '', isOver: false })
})

test('names and sentences that no database takes are made plain, and a session is a word or none', () => {
  const odd = 'x\0y\ud800'
  const call = { type: 'tool_use', id: odd, name: odd, input: { odd } }
  const lines = [
    { type: 'assistant', session_id: '--resume', message: { id: '1', content: [call] } },
    { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: odd, content: odd }] } },
    { type: 'result', session_id: '-p', is_error: true, result: odd },
  ]
  const turn = read('claude-x', lines.map((line) => JSON.stringify(line)).join('\n'))
  expect(turn).not.toHaveProperty('sessionId')
  expect(turn.steps[0]?.calls[0]).toMatchObject({ id: 'x\u{fffd}y\u{fffd}', tool: 'x\u{fffd}y\u{fffd}', state: 'done' })
  expect(turn.failure?.error).toBe('x\u{fffd}y\u{fffd}')
})

test('a call whose end was not told is open', () => {
  const cut = recorded('claude-tools').split('\n').slice(0, 4).join('\n')
  const [step] = read('claude-tools', cut).steps
  expect(step?.calls.map(({ tool, state }) => `${tool} ${state}`)).toEqual(['Bash open', 'Read open'])
})
