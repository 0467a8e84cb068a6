import { formatDuration } from '../base/duration.ts'
import { describeError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { ToolContext, ToolOutcome } from '../loop/ports.ts'
import { readAnswer } from '../tools/command-tool.ts'
import { TOOL_LIMITS } from '../tools/limits.ts'
import { reasonOf } from '../tools/supervised-command.ts'
import { readAgain } from './input.ts'
import type { InputForm } from './input.ts'
import { insideOf } from './inside.ts'
import { begins, ends, isOver, leaveIdentity } from './owner.ts'
import type { UnderWay } from './owner.ts'
import { keptResult } from './result.ts'

/** What a probe found out; the same words as those of a command's probe. */
export type ProbeAnswer =
  | { readonly outcome: 'done'; readonly result?: unknown }
  | { readonly outcome: 'not_done' }
  | { readonly outcome: 'unknown' }

export type Work = (
  input: unknown,
  signal: AbortSignal,
  call: { readonly key: string; readonly threadId: string; readonly runId: string },
) => unknown

export interface FunctionTool {
  readonly name: string
  readonly effect: 'read' | 'write'
  readonly input: InputForm
  readonly run: Work
  readonly probe?: Work
  readonly ports: FunctionPorts
  /** What is kept of what it returns, where it is another's business what a model is shown of that. */
  readonly resultCharacters?: number
}

export interface FunctionPorts {
  readonly warn: (message: string) => void
  /** From the signal until it is left behind. */
  readonly graceMs?: number
}

/**
 * Performs the action. Whatever the function does, there is an outcome: it returns, it throws, or it was told to stop
 * and is left behind after a grace, because a loop that waits for it could never be cancelled.
 */
export async function performWork(tool: FunctionTool, given: unknown, context: ToolContext): Promise<ToolOutcome> {
  if (context.signal.aborted) return notBegun(`${reasonOf(context.signal)} before it was started`)
  const input = readAgain(tool.input, given)
  if ('error' in input) return notBegun(input.error)
  if (tool.probe !== undefined) {
    const trouble = await leaveIdentity(context).then(() => undefined, describeError)
    if (trouble !== undefined) return notBegun(`it could not be started: ${trouble}`)
  }
  const limitMs = Math.max(1, context.deadline - context.clock.now())
  const begun: UnderWay = { key: context.key, at: undefined }
  begins(begun)
  const run: Work = async (...call) => {
    try {
      return await tool.run(...call)
    } finally {
      ends(begun)
    }
  }
  const ended = await bounded(tool, run, input.value, context, limitMs)
  if (ended.kind === 'returned') return outcomeOfResult(tool, ended.value)
  if (ended.kind === 'threw' && isNotDone(ended.error)) return { kind: 'failed', error: messageOf(ended.error) }
  const error = ended.kind === 'threw' ? whyItThrew(ended) : ended.error
  if (tool.effect === 'read') return { kind: 'failed', error }
  // What has thrown has ended; what was left behind goes on.
  return { kind: 'in-doubt', error, over: ended.kind === 'threw' }
}

function whyItThrew({ error, stopped }: Extract<Ended, { kind: 'threw' }>): string {
  const said = messageOf(error)
  return stopped === undefined || !said.includes(stopped) ? `${stopped ?? 'it threw'}: ${said}` : said
}

const notBegun = (error: string): ToolOutcome => ({ kind: 'failed', error, unbegun: true })

/** The effect has happened, whatever it returned. A read without a result is none. */
function outcomeOfResult({ effect, resultCharacters }: FunctionTool, value: unknown): ToolOutcome {
  const kept = keptResult(value, resultCharacters)
  if ('result' in kept) return { kind: 'done', result: kept.result }
  if (effect === 'read') return { kind: 'failed', error: `what it returned cannot be used: ${kept.trouble}` }
  return { kind: 'done', result: `done; what it returned cannot be kept: ${kept.trouble}` }
}

/** A question that could not be asked leaves the doubt as it is. */
export async function askProbe(
  tool: FunctionTool & { readonly probe: Work },
  given: unknown,
  context: ToolContext,
): Promise<ToolOutcome | { readonly kind: 'unknown' }> {
  const input = readAgain(tool.input, given)
  if ('error' in input) return { kind: 'unknown' }
  // Asked first: what ends while the question is under way may have been done after its answer.
  const wasOver = isOver(context)
  const ended = await bounded(tool, tool.probe, input.value, context, TOOL_LIMITS.probeMs)
  if (ended.kind !== 'returned') return { kind: 'unknown' }
  const answer = readAnswer(ended.value)
  if (answer.kind === 'done') return outcomeOfResult(tool, answer.result)
  // What may still happen has not been left undone.
  return answer.kind === 'failed' && !wasOver ? { kind: 'unknown' } : answer
}

type Ended =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown; readonly stopped?: string }
  | { readonly kind: 'left-behind'; readonly error: string }

/** One call of a function of the tool's, with a signal that also knows its time limit. */
async function bounded(
  tool: FunctionTool,
  work: Work,
  input: unknown,
  context: ToolContext,
  limitMs: number,
): Promise<Ended> {
  const { clock, key, threadId, runId } = context
  const stop = new AbortController()
  const onAbort = () => stop.abort(stopReason(reasonOf(context.signal)))
  if (context.signal.aborted) onAbort()
  context.signal.addEventListener('abort', onAbort, { once: true })
  const timedOut = () => stop.abort(stopReason(`timed out after ${formatDuration(limitMs)}`))
  const disarm = clock.after(limitMs, timedOut, { ref: true })
  const call = async (): Promise<Ended> => {
    try {
      return {
        kind: 'returned',
        value: await insideOf(runId, () => work(input, stop.signal, { key, threadId, runId })),
      }
    } catch (error) {
      return { kind: 'threw', error, ...(stop.signal.aborted ? { stopped: reasonOf(stop.signal) } : {}) }
    }
  }
  const ended = call()
  try {
    return await Promise.race([ended, leftBehind(tool, context, stop.signal, ended)])
  } finally {
    disarm()
    context.signal.removeEventListener('abort', onAbort)
  }
}

/** In its own process a function cannot be ended. It can only be left alone, and said to be. */
function leftBehind(
  { name, ports }: FunctionTool,
  { clock }: ToolContext,
  signal: AbortSignal,
  ended: Promise<Ended>,
): Promise<Ended> {
  return new Promise((resolve) => {
    const giveUp = () => {
      ports.warn(`the tool ${name} ignores its signal; it is left behind in this process`)
      resolve({ kind: 'left-behind', error: `${reasonOf(signal)}; it was told to stop and does not` })
    }
    const onStop = () => {
      const cancel = clock.after(ports.graceMs ?? LIMITS.graceMs, giveUp, { ref: true })
      void ended.then(cancel)
    }
    if (signal.aborted) onStop()
    signal.addEventListener('abort', onStop, { once: true })
  })
}

/** By the names that `fetch` and others know. */
const stopReason = (why: string) => new DOMException(why, why === 'cancelled' ? 'AbortError' : 'TimeoutError')

const isNotDone = (error: unknown) => (error as { readonly code?: unknown } | null)?.code === 'tool/not-done'

/** Anything can be thrown; what cannot be told in a sentence is still no reason to fail. */
function messageOf(error: unknown): string {
  const text = isNotDone(error) ? (error as Error).message : describeError(error)
  return text.length <= TOOL_LIMITS.errorCharacters ? text : `${text.slice(0, TOOL_LIMITS.errorCharacters)}…`
}
