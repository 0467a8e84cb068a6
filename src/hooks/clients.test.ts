import { describe, expect, test } from 'vitest'

import { readClaude } from './claude.ts'
import { readCodex } from './codex.ts'
import { Unreadable } from './event.ts'
import type { Happening } from './event.ts'
import { readGemini } from './gemini.ts'

type Read = typeof readClaude

const happening = (read: Read, fields: object): Happening | string => {
  const event = read(JSON.stringify({ session_id: 's1', ...fields }))
  return event instanceof Unreadable ? event.why : event.happening
}

const claude = (event: string, more: object = {}) => happening(readClaude, { hook_event_name: event, ...more })

describe('Claude Code', () => {
  test('every way in which a session starts is told apart, and an unknown one is a start', () => {
    for (const source of ['startup', 'resume', 'clear', 'compact', 'fork'])
      expect(claude('SessionStart', { source })).toEqual({ kind: 'started', source })
    expect(claude('SessionStart', { source: 'novel' })).toEqual({ kind: 'started', source: 'startup' })
  })

  test('a Stop with something in the background is a pause; without the flag nobody knows whether it went on', () => {
    const stop = { last_assistant_message: 'words', stop_hook_active: true, background_tasks: [], session_crons: [] }
    expect(claude('Stop', stop)).toEqual({ kind: 'stopped', isPaused: false, isActive: true, lastMessage: 'words' })
    expect(claude('Stop', { background_tasks: [{ id: 1 }] })).toEqual({ kind: 'stopped', isPaused: true })
    expect(claude('Stop', { session_crons: ['x'], stop_hook_active: 'yes' })).toEqual({
      kind: 'stopped',
      isPaused: true,
    })
  })

  test('failures have their kinds', () => {
    expect(claude('StopFailure', { error: 'authentication_failed' })).toMatchObject({ kind: 'failed', code: 'auth' })
    expect(claude('StopFailure', { error: 'billing_error' })).toMatchObject({ code: 'budget' })
    // What a client says is no name of ours, and none that every object has.
    for (const error of ['__proto__', 'constructor', 'toString'])
      expect(claude('StopFailure', { error })).toMatchObject({ code: 'model', error })
    expect(claude('StopFailure', { error: 'server_error', error_details: 'overloaded' })).toEqual({
      kind: 'failed',
      code: 'model',
      error: 'server_error: overloaded',
    })
  })

  test('to wait for a person is to wait; to be idle is not', () => {
    expect(claude('Notification', { message: 'may I?', notification_type: 'permission_prompt' })).toEqual({
      kind: 'waiting',
      what: 'may I?',
    })
    expect(claude('Notification', { notification_type: 'idle_prompt' })).toEqual({ kind: 'nothing' })
    expect(claude('PermissionRequest', { tool_name: 'Bash' })).toMatchObject({ kind: 'waiting' })
  })

  test('what a subagent does is beside the turn', () => {
    expect(claude('PreToolUse', { tool_name: 'Bash' })).toEqual({ kind: 'active', inTurn: true })
    expect(claude('PreToolUse', { agent_id: 'a1' })).toEqual({ kind: 'active', inTurn: false })
    expect(claude('SubagentStop')).toEqual({ kind: 'active', inTurn: false })
  })

  test('a session of Cursor is none of Claude Code', () => {
    expect(claude('Stop', { cursor_version: '2.0' })).toBe('it comes from Cursor')
  })

  test('the session is known by its id alone, and its id is a word', () => {
    for (const session_id of ['', '../x', 'a b', 7, null, 'x'.repeat(101)])
      expect(claude('Stop', { session_id })).toBe('it does not name its session (Stop)')
  })
})

describe('Codex', () => {
  test('its turns have names', () => {
    const event = readCodex(JSON.stringify({ session_id: 'c1', hook_event_name: 'UserPromptSubmit', turn_id: 't1' }))
    expect(event).toMatchObject({ turn: 't1', happening: { kind: 'begun' } })
  })

  test('its notification is a report of a whole turn', () => {
    const fields = {
      type: 'agent-turn-complete',
      'thread-id': 'c1',
      'turn-id': 't1',
      'last-assistant-message': 'words',
    }
    expect(readCodex(JSON.stringify(fields))).toEqual({
      name: 'agent-turn-complete',
      sessionId: 'c1',
      turn: 't1',
      happening: { kind: 'stopped', isPaused: false, isReport: true, lastMessage: 'words' },
    })
    expect(readCodex('{"type":"approval-requested"}')).toBeInstanceOf(Unreadable)
  })
})

describe('Gemini CLI', () => {
  const gemini = (event: string, more: object = {}) => happening(readGemini, { hook_event_name: event, ...more })

  test('a turn is from BeforeAgent to AfterAgent', () => {
    expect(gemini('BeforeAgent', { prompt: 'x' })).toEqual({ kind: 'begun' })
    expect(gemini('AfterAgent', { prompt_response: 'words', stop_hook_active: false })).toEqual({
      kind: 'stopped',
      isPaused: false,
      isActive: false,
      lastMessage: 'words',
    })
    expect(gemini('Notification', { message: 'may I?' })).toEqual({ kind: 'waiting', what: 'may I?' })
    expect(gemini('SessionEnd', { reason: 'exit' })).toEqual({ kind: 'ended', why: 'exit' })
    expect(gemini('Stop')).toBe('there is no event Stop')
  })
})
