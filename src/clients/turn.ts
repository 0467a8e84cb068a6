import type { ToldStep } from '../actions/told.ts'
import type { FailureCode } from '../runs/run.ts'
import type { TokensTold } from '../sessions/kept.ts'

/** What a client printed, however it ended. */
export interface Printed {
  readonly stdout: string
  readonly stderr: string
}

/** What a client told of one of its turns, in our words. Whatever it did not come to say is not there. */
export interface ClientTurn {
  readonly sessionId?: string
  readonly model?: string
  readonly steps: readonly ToldStep[]
  /** Its last words. */
  readonly reply?: string
  /** Of this turn. */
  readonly tokens?: TokensTold
  readonly costUsd?: number
  /** Of the session from its begin, where a client counts so. */
  readonly sessionTokens?: TokensTold
  readonly sessionCostUsd?: number
  readonly failure?: ClientFailure
  /** The last trouble that it went on after: why it was still at it when it was stopped. */
  readonly trouble?: string
  /** It said itself that the turn is over. */
  readonly isOver: boolean
  /** The session that it was to go on with is not there any more; nothing was done. */
  readonly isGone: boolean
  /** What it printed that is not of its language, as text. */
  readonly strays: string
}

export interface ClientFailure {
  readonly code: FailureCode
  readonly error: string
}

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const fieldsIn = (value: unknown): Fields => (isFields(value) ? value : {})

export const textIn = (fields: Fields, name: string): string | undefined => {
  const value = fields[name]
  return typeof value === 'string' ? value : undefined
}

/** What a model had a hand in and becomes a name or a sentence here: no NUL, which PostgreSQL keeps in no text, and no half characters. */
export const plain = (text: string, most: number): string =>
  text.slice(0, most).toWellFormed().replaceAll('\0', '\u{fffd}')

/** It becomes an argument and part of a thread's id, so it is no more than a word. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

export const sessionIn = (fields: Fields, name: string): string | undefined => {
  const id = textIn(fields, name)
  return id !== undefined && SESSION_ID.test(id) ? id : undefined
}

export const listIn = (fields: Fields, name: string): readonly Fields[] => {
  const value = fields[name]
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** A number that can be one of tokens; anything else counts as none. */
export const countIn = (fields: Fields, name: string): number => {
  const value = fields[name]
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

export const moneyIn = (fields: Fields, name: string): number | undefined => {
  const value = fields[name]
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

export interface Lines {
  readonly events: readonly Fields[]
  readonly strays: string
}

/**
 * One JSON object a line. A line that is none, as a warning, or one that was cut in two, is text: it is kept, and the rest is
 * read all the same.
 */
export function readLines(stdout: string): Lines {
  const events: Fields[] = []
  const strays: string[] = []
  for (const line of stdout.split('\n')) {
    if (line.trim() === '') continue
    const event = objectOf(line)
    if (event === undefined) strays.push(line)
    else events.push(event)
  }
  return { events, strays: strays.join('\n') }
}

function objectOf(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isFields(value) && typeof value['type'] === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
