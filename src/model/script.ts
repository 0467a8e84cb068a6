import type { ModelUsage } from '../loop/ports.ts'
import { ModelError } from './model-error.ts'

/** A script as it is written, in a file or in a test. */
export interface Script {
  readonly replies: readonly (ScriptedReply | ScriptedError)[]
  /** Answers to side calls (summaries, titles), in order; after the last there is a fixed one. */
  readonly side?: readonly (ScriptedReply | ScriptedError)[]
  /**
   * Starts over with each message of the user, for an agent that always has an answer; otherwise the script is the
   * whole thread's. `{{message}}` in a text or an input is then what the user said.
   */
  readonly repeat?: boolean
}

export interface ScriptedReply {
  readonly text?: string
  readonly toolCalls?: readonly { readonly tool: string; readonly input?: unknown }[]
  readonly delayMs?: number
  /** The text comes word by word over this long, after the delay; otherwise all at once. */
  readonly streamMs?: number
  readonly usage?: Partial<ModelUsage>
  /** `length`: cut off there by the model's own limit. `refusal`: it will not answer. */
  readonly finish?: 'length' | 'refusal'
}

/** One failed try. Without a status: the connection breaks. */
export interface ScriptedError {
  readonly error: { readonly status?: number; readonly retryAfter?: string | number; readonly message?: string }
  readonly delayMs?: number
  readonly usage?: Partial<ModelUsage>
}

/** A reply and the tries that fail before it. The last part may have no reply: the script ends with failures. */
export interface ScriptPart {
  readonly errors: readonly ScriptedError[]
  readonly reply?: ScriptedReply
}

export function partsOf(script: Script): readonly ScriptPart[] {
  const parts: ScriptPart[] = []
  let errors: ScriptedError[] = []
  for (const entry of script.replies) {
    if ('error' in entry) errors.push(entry)
    else {
      parts.push({ errors, reply: entry })
      errors = []
    }
  }
  return errors.length === 0 ? parts : [...parts, { errors }]
}

/** Says which place is wrong: `clerk.json: replies[2].toolCalls[0].tool must be a text`. */
export function parseScript(value: unknown, name: string): Script {
  const fields = objectAt(value, 'the script', ['replies', 'side', 'repeat'], name)
  if (!Array.isArray(fields['replies'])) throw wrong(name, 'replies', 'a list')
  const { repeat } = fields
  if (repeat !== undefined && typeof repeat !== 'boolean') throw wrong(name, 'repeat', 'true or false')
  fields['replies'].forEach((entry, index) => checkEntry(entry, `replies[${index}]`, name))
  if (fields['side'] === undefined) return value as Script
  if (!Array.isArray(fields['side'])) throw wrong(name, 'side', 'a list')
  fields['side'].forEach((entry, index) => checkEntry(entry, `side[${index}]`, name))
  return value as Script
}

const ENTRY = ['text', 'toolCalls', 'error', 'delayMs', 'streamMs', 'usage', 'finish']

function checkEntry(value: unknown, place: string, name: string): void {
  const entry = objectAt(value, place, ENTRY, name)
  checkAmount(entry['delayMs'], `${place}.delayMs`, name)
  checkAmount(entry['streamMs'], `${place}.streamMs`, name)
  if (entry['usage'] !== undefined) checkUsage(entry['usage'], `${place}.usage`, name)
  if ('error' in entry) return checkError(entry, place, name)
  if (!('text' in entry) && !('toolCalls' in entry)) throw wrong(name, place, 'a reply (text, toolCalls) or an error')
  if (entry['text'] !== undefined && typeof entry['text'] !== 'string') throw wrong(name, `${place}.text`, 'a text')
  if (entry['finish'] !== undefined && entry['finish'] !== 'length' && entry['finish'] !== 'refusal')
    throw wrong(name, `${place}.finish`, '"length" or "refusal"')
  if (entry['toolCalls'] === undefined) return
  if (!Array.isArray(entry['toolCalls'])) throw wrong(name, `${place}.toolCalls`, 'a list')
  entry['toolCalls'].forEach((call, index) => checkToolCall(call, `${place}.toolCalls[${index}]`, name))
}

function checkToolCall(value: unknown, place: string, name: string): void {
  const { tool } = objectAt(value, place, ['tool', 'input'], name)
  if (typeof tool !== 'string' || tool === '') throw wrong(name, `${place}.tool`, 'the name of a tool')
}

function checkError(entry: Fields, place: string, name: string): void {
  if ('text' in entry || 'toolCalls' in entry) throw wrong(name, place, 'either a reply or an error, not both')
  const error = objectAt(entry['error'], `${place}.error`, ['status', 'retryAfter', 'message'], name)
  const { status, retryAfter } = error
  if (status !== undefined && !(Number.isInteger(status) && (status as number) >= 400 && (status as number) < 600))
    throw wrong(name, `${place}.error.status`, 'an HTTP status from 400 to 599')
  if (retryAfter !== undefined && typeof retryAfter !== 'string' && typeof retryAfter !== 'number')
    throw wrong(name, `${place}.error.retryAfter`, 'what a Retry-After header says, as "2"')
}

function checkUsage(value: unknown, place: string, name: string): void {
  const usage = objectAt(value, place, ['inputTokens', 'outputTokens', 'costMicrousd'], name)
  for (const [key, amount] of Object.entries(usage)) checkAmount(amount, `${place}.${key}`, name)
}

function checkAmount(value: unknown, place: string, name: string): void {
  if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= 0))
    throw wrong(name, place, 'a whole number, not negative')
}

type Fields = Readonly<Record<string, unknown>>

function objectAt(value: unknown, place: string, known: readonly string[], name: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(name, place, 'an object')
  const stranger = Object.keys(value).find((key) => !known.includes(key))
  if (stranger !== undefined)
    throw new ModelError('model/script', `${name}: ${place} has "${stranger}"; known are ${known.join(', ')}`)
  return value as Fields
}

const wrong = (name: string, place: string, wanted: string) =>
  new ModelError('model/script', `${name}: ${place} must be ${wanted}`)
