import { readLikeClaude } from './claude.ts'
import { Unreadable, fieldsOf, flagOf, given, textOf } from './event.ts'
import type { Fields, Happening, HookEvent } from './event.ts'

const SOURCES = ['startup', 'resume', 'clear'] as const
const inTurn: Happening = { kind: 'active', inTurn: true }

/** Gemini names no turns: what follows a BeforeAgent belongs to it. */
const HAPPENINGS: Readonly<Record<string, (fields: Fields) => Happening>> = {
  SessionStart: (fields) => ({
    kind: 'started',
    source: SOURCES.find((source) => source === fields['source']) ?? 'startup',
  }),
  BeforeAgent: () => ({ kind: 'begun' }),
  AfterAgent: (fields) => ({
    kind: 'stopped',
    isPaused: false,
    ...given({ isActive: flagOf(fields, 'stop_hook_active'), lastMessage: textOf(fields, 'prompt_response') }),
  }),
  BeforeModel: () => inTurn,
  AfterModel: () => inTurn,
  BeforeToolSelection: () => inTurn,
  BeforeTool: () => inTurn,
  AfterTool: () => inTurn,
  PreCompress: () => inTurn,
  Notification: (fields) => ({ kind: 'waiting', what: textOf(fields, 'message') ?? 'it waits for a person' }),
  SessionEnd: (fields) => ({ kind: 'ended', why: textOf(fields, 'reason') ?? 'other' }),
}

export function readGemini(input: string): HookEvent | Unreadable {
  const fields = fieldsOf(input)
  return fields instanceof Unreadable ? fields : readLikeClaude(fields, HAPPENINGS, undefined)
}
