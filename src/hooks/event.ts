import type { FailureCode } from '../runs/run.ts'
import { CLIENTS } from '../sessions/session.ts'
import type { Client } from '../sessions/session.ts'
import type { StartSource } from '../sessions/events.ts'

/** What an event of any client means to us. */
export type Happening =
  | { readonly kind: 'started'; readonly source: StartSource }
  | { readonly kind: 'begun' }
  /** `inTurn` is false for what goes on beside the turn, in a subagent. */
  | { readonly kind: 'active'; readonly inTurn: boolean }
  | {
      readonly kind: 'stopped'
      readonly isActive?: boolean
      readonly isPaused: boolean
      readonly lastMessage?: string
      /** Told after the fact: the client reads no answer. */
      readonly isReport?: true
    }
  | { readonly kind: 'failed'; readonly code: FailureCode; readonly error: string }
  | { readonly kind: 'waiting'; readonly what: string }
  | { readonly kind: 'ended'; readonly why: string }
  /** Known, and of no meaning to us. */
  | { readonly kind: 'nothing' }

export interface HookEvent {
  readonly name: string
  readonly sessionId: string
  readonly turn?: string
  readonly transcript?: string
  readonly cwd?: string
  readonly happening: Happening
  readonly call?: ToolCall
}

/** The tool that an event is about. */
export interface ToolCall {
  readonly tool: string
  readonly input: unknown
  /** The client's own name of the call. */
  readonly callId?: string
  /** In a subagent. */
  readonly isNested: boolean
}

/** What cannot be understood is kept as a fact of its own. A class, because a payload may have any field. */
export class Unreadable {
  readonly why: string

  constructor(why: string) {
    this.why = why
  }
}

export type Fields = Readonly<Record<string, unknown>>

export const unreadable = (why: string): Unreadable => new Unreadable(why)

export const isClient = (name: string): name is Client => (CLIENTS as readonly string[]).includes(name)

export const textOf = (fields: Fields, name: string): string | undefined => {
  const value = fields[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

export const flagOf = (fields: Fields, name: string): boolean | undefined => {
  const value = fields[name]
  return typeof value === 'boolean' ? value : undefined
}

/** It becomes part of a thread's id and of a file's name, so it is no more than a word. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

export function sessionIn(fields: Fields, name = 'session_id'): string | undefined {
  const id = textOf(fields, name)
  return id !== undefined && SESSION_ID.test(id) ? id : undefined
}

export function fieldsOf(input: string): Fields | Unreadable {
  let value: unknown
  try {
    value = JSON.parse(input)
  } catch {
    return unreadable(input.trim() === '' ? 'it is empty' : 'it is not JSON')
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? (value as Fields) : unreadable('it is not an object')
}

export function callIn(fields: Fields): ToolCall | undefined {
  const [tool, callId] = [textOf(fields, 'tool_name'), textOf(fields, 'tool_use_id')]
  if (tool === undefined) return undefined
  return { tool, input: fields['tool_input'] ?? {}, isNested: fields['agent_id'] !== undefined, ...given({ callId }) }
}

/** A field that is not there is left out, not undefined. */
export function given<T extends Readonly<Record<string, unknown>>>(
  values: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
