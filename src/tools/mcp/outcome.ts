import type { ToolOutcome } from '../../loop/ports.ts'
import type { Called } from './connection.ts'
import { CONNECTION_LOST } from './http-transport.ts'
import { readResult, resultText } from './result.ts'
import { NOT_SENT } from './stdio-transport.ts'

/*
 * What the end of a request says about the action that it was:
 *
 *   a result                                      done
 *   a result with isError                         a write: done, and the error is its result; else failed
 *   refused before anything ran (bad parameters,
 *   unknown method, HTTP 4xx), not sent at all    failed
 *   it asks for input                             failed
 *   anything else: an internal error, a lost
 *   connection, a timeout, a cancel               a write: in doubt; a read: failed
 *
 * With isError a tool says that it ran and that something went wrong. Whether that was before, during or after its effect
 * it does not say, so it is not "certainly did not happen". Nor is it a doubt: the server has answered, and the answer is
 * what the model has to know. A tool that the operator calls idempotent may simply be called again.
 */

export interface Judged {
  readonly effect: 'read' | 'write'
  readonly idempotent: boolean
}

export function outcomeOfCall(called: Called, tool: Judged): ToolOutcome {
  if (called.kind === 'answered') return outcomeOfAnswer(called.result, tool)
  if (called.kind === 'stopped') return unknown(called.why, tool)
  const { error } = called
  const what = plain(error instanceof Error ? error.message : String(error))
  if (asksForInput(error)) return refused('this tool asks for input, which is not supported yet')
  return wasRefused(error) ? refused(what) : unknown(what, tool)
}

/** Of an earlier try of the same action a refusal says nothing. */
const refused = (error: string): ToolOutcome => ({ kind: 'failed', error, unbegun: true })

function outcomeOfAnswer(result: Extract<Called, { kind: 'answered' }>['result'], tool: Judged): ToolOutcome {
  if (result.isError !== true) return { kind: 'done', result: readResult(result) }
  const error = plain(resultText(result))
  if (tool.effect === 'read' || tool.idempotent) return refused(error)
  return { kind: 'done', result: { error, note: 'the tool reports an error; parts of what it does may have happened' } }
}

/** The outcome of a request that went out and was not answered. */
const unknown = (why: string, { effect }: Judged): ToolOutcome => ({
  kind: effect === 'write' ? 'in-doubt' : 'failed',
  error: plain(why),
})

// JSON-RPC: parse error, invalid request, method not found, invalid params; MCP: header mismatch, missing capability,
// unsupported version, elicitation by URL.
const REFUSALS: readonly unknown[] = [-32_700, -32_600, -32_601, -32_602, -32_020, -32_021, -32_022, -32_042]

// The request had no way to go.
const NO_CONNECTION: readonly unknown[] = [
  NOT_SENT,
  'NOT_CONNECTED',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]

interface Coded {
  readonly code?: unknown
  readonly cause?: unknown
  readonly data?: { readonly status?: unknown; readonly resultType?: unknown }
}

const asCoded = (error: unknown): Coded => (typeof error === 'object' && error !== null ? error : {})

function wasRefused(error: unknown): boolean {
  const { code, cause, data } = asCoded(error)
  if (code === CONNECTION_LOST) return false
  if (REFUSALS.includes(code) || NO_CONNECTION.includes(code)) return true
  if (typeof data?.status === 'number') return isRefusal(data.status)
  return cause !== undefined && NO_CONNECTION.includes(asCoded(cause).code)
}

/** What a server says about the request and not about its work. 408: it waited for a part of it, and may have the rest. */
const isRefusal = (status: number) => status >= 400 && status < 500 && status !== 408

const asksForInput = (error: unknown) =>
  ['UNSUPPORTED_RESULT_TYPE', -32_021, -32_042].includes(asCoded(error).code as string)

/** One database takes no zero bytes in a text, and neither takes half a character. */
const plain = (text: string) => text.replaceAll('\0', '').toWellFormed()
