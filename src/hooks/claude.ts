import type { FailureCode } from '../runs/run.ts'
import { Unreadable, callIn, fieldsOf, flagOf, given, sessionIn, textOf, unreadable } from './event.ts'
import type { Fields, Happening, HookEvent } from './event.ts'

const SOURCES = ['startup', 'resume', 'clear', 'compact', 'fork'] as const

const FAILURES: ReadonlyMap<string, FailureCode> = new Map(
  Object.entries({
    authentication_failed: 'auth',
    oauth_org_not_allowed: 'auth',
    billing_error: 'budget',
  } as const),
)

/** A session that has been idle for a while says so: nobody has to be told, it is idle already. */
const NOT_WAITING = ['idle_prompt', 'auth_success', 'elicitation_complete', 'elicitation_response']

const inTurn = (fields: Fields): Happening => ({ kind: 'active', inTurn: fields['agent_id'] === undefined })

const HAPPENINGS: Readonly<Record<string, (fields: Fields) => Happening>> = {
  SessionStart: (fields) => ({
    kind: 'started',
    source: SOURCES.find((source) => source === fields['source']) ?? 'startup',
  }),
  UserPromptSubmit: () => ({ kind: 'begun' }),
  PreToolUse: inTurn,
  PostToolUse: inTurn,
  PostToolUseFailure: inTurn,
  PostToolBatch: inTurn,
  PreCompact: inTurn,
  PostCompact: inTurn,
  SubagentStart: () => ({ kind: 'active', inTurn: false }),
  SubagentStop: () => ({ kind: 'active', inTurn: false }),
  Stop: (fields) => ({
    kind: 'stopped',
    isPaused: isGoingOn(fields['background_tasks']) || isGoingOn(fields['session_crons']),
    ...given({ isActive: flagOf(fields, 'stop_hook_active'), lastMessage: textOf(fields, 'last_assistant_message') }),
  }),
  StopFailure: (fields) => {
    const error = textOf(fields, 'error') ?? 'unknown'
    const details = textOf(fields, 'error_details') ?? textOf(fields, 'last_assistant_message')
    return {
      kind: 'failed',
      code: FAILURES.get(error) ?? 'model',
      error: details === undefined ? error : `${error}: ${details}`,
    }
  },
  Notification: (fields) =>
    NOT_WAITING.includes(textOf(fields, 'notification_type') ?? '')
      ? { kind: 'nothing' }
      : { kind: 'waiting', what: textOf(fields, 'message') ?? 'it waits for a person' },
  PermissionRequest: (fields) => ({
    kind: 'waiting',
    what: `it asks for leave to use ${textOf(fields, 'tool_name') ?? 'a tool'}`,
  }),
  SessionEnd: (fields) => ({ kind: 'ended', why: textOf(fields, 'reason') ?? 'other' }),
}

const isGoingOn = (list: unknown) => Array.isArray(list) && list.length > 0

/** What Claude Code says on standard input. Codex says the same in other words for a few things. */
export function readClaude(input: string): HookEvent | Unreadable {
  const fields = fieldsOf(input)
  if (fields instanceof Unreadable) return fields
  // Other editors run the hooks in Claude's settings too; their sessions are not Claude's.
  if (textOf(fields, 'cursor_version') !== undefined) return unreadable('it comes from Cursor')
  return readLikeClaude(fields, HAPPENINGS, textOf(fields, 'prompt_id'))
}

export function readLikeClaude(
  fields: Fields,
  happenings: Readonly<Record<string, (fields: Fields) => Happening>>,
  turn: string | undefined,
): HookEvent | Unreadable {
  const [name, sessionId] = [textOf(fields, 'hook_event_name'), sessionIn(fields)]
  if (name === undefined) return unreadable('it does not name its event')
  if (sessionId === undefined) return unreadable(`it does not name its session (${name})`)
  const read = Object.hasOwn(happenings, name) ? happenings[name] : undefined
  if (read === undefined) return unreadable(`there is no event ${name.slice(0, 60)}`)
  const [transcript, cwd] = [textOf(fields, 'transcript_path'), textOf(fields, 'cwd')]
  return { name, sessionId, happening: read(fields), ...given({ turn, transcript, cwd, call: callIn(fields) }) }
}

export const CLAUDE_HAPPENINGS = HAPPENINGS
