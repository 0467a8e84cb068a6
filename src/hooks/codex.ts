import { CLAUDE_HAPPENINGS, readLikeClaude } from './claude.ts'
import { Unreadable, fieldsOf, given, sessionIn, textOf, unreadable } from './event.ts'
import type { Fields, Happening, HookEvent } from './event.ts'

const inTurn: Happening = { kind: 'active', inTurn: true }

const HAPPENINGS: Readonly<Record<string, (fields: Fields) => Happening>> = {
  ...CLAUDE_HAPPENINGS,
  PreModelRequest: () => inTurn,
  PostModelRequest: () => inTurn,
  // A person broke the turn off. The next event of the session says how it goes on.
  Interrupt: () => ({ kind: 'failed', code: 'killed', error: 'a person interrupted the turn' }),
}

/** Codex mirrors Claude's hooks and names each turn; its older `notify` tells of a turn's end and reads no answer. */
export function readCodex(input: string): HookEvent | Unreadable {
  const fields = fieldsOf(input)
  if (fields instanceof Unreadable) return fields
  return textOf(fields, 'type') === undefined
    ? readLikeClaude(fields, HAPPENINGS, textOf(fields, 'turn_id'))
    : readNotify(fields)
}

function readNotify(fields: Fields): HookEvent | Unreadable {
  const [name, sessionId] = [textOf(fields, 'type') ?? '', sessionIn(fields, 'thread-id')]
  if (name !== 'agent-turn-complete') return unreadable(`there is no notification ${name.slice(0, 60)}`)
  if (sessionId === undefined) return unreadable('it does not name its thread')
  const [turn, cwd] = [textOf(fields, 'turn-id'), textOf(fields, 'cwd')]
  const lastMessage = given({ lastMessage: textOf(fields, 'last-assistant-message') })
  return {
    name,
    sessionId,
    happening: { kind: 'stopped', isPaused: false, isReport: true, ...lastMessage },
    ...given({ turn, cwd }),
  }
}
