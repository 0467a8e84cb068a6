import type { ModelUsage } from '../loop/ports.ts'
import { ModelError } from './model-error.ts'

/** A script as it is written, in a file or in a test. */
export interface Script {
  readonly replies: readonly (ScriptedReply | ScriptedError)[]
}

export interface ScriptedReply {
  readonly text?: string
  readonly toolCalls?: readonly { readonly tool: string; readonly input?: unknown }[]
  readonly delayMs?: number
  readonly usage?: Partial<ModelUsage>
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
  const fields = objectAt(value, 'the script', ['replies'], name)
  if (!Array.isArray(fields['replies'])) throw wrong(name, 'replies', 'a list')
  fields['replies'].forEach((entry, index) => checkEntry(entry, `replies[${index}]`, name))
  return value as Script
}

const ENTRY = ['text', 'toolCalls', 'error', 'delayMs', 'usage']

function checkEntry(value: unknown, place: string, name: string): void {
  const entry = objectAt(value, place, ENTRY, name)
  checkAmount(entry['delayMs'], `${place}.delayMs`, name)
  if (entry['usage'] !== undefined) checkUsage(entry['usage'], `${place}.usage`, name)
  if ('error' in entry) return checkError(entry, place, name)
  if (!('text' in entry) && !('toolCalls' in entry)) throw wrong(name, place, 'a reply (text, toolCalls) or an error')
  if (entry['text'] !== undefined && typeof entry['text'] !== 'string') throw wrong(name, `${place}.text`, 'a text')
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
