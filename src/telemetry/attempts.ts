import type { Attributes, Context, Link, Span, SpanContext } from '@opentelemetry/api'

import { describeError } from '../base/errors.ts'
import type { RunId, ThreadId } from '../base/ids.ts'
import type { Claim } from '../runs/claim.ts'
import { findRun } from '../runs/run.ts'
import type { Run, RunRequest } from '../runs/run.ts'
import { noteTrace, traceOf } from '../runs/trace.ts'
import type { Store } from '../store/store.ts'
import type { Api } from './api.ts'
import { shown } from './content.ts'
import { ERROR_TYPE, GEN_AI, HOLDFAST } from './conventions.ts'
import type { Instruments } from './instruments.ts'

export interface AttemptsOptions {
  readonly api: Api
  readonly store: Store
  readonly instruments: Instruments
  readonly content: boolean
  readonly warn: (message: string) => void
}

/** An attempt that is under way here: what it does belongs under its span. */
export interface OpenAttempt {
  readonly runId: RunId
  readonly claimedAt: number
  readonly span: Span
  readonly context: Context
}

/**
 * One span for each attempt at a run: `invoke_agent NAME`, or `run NAME` for a command that is no agent. An attempt is a trace
 * of its own, so that one which waited a week for a person is not a week long; it refers to the attempt before it. A run that
 * another waits for is part of the trace of that one.
 */
export class Attempts {
  readonly #options: AttemptsOptions
  readonly #open = new Map<ThreadId, OpenAttempt>()
  readonly #functions = new Map<string, OpenAttempt>()

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  /** That of a thread: it has one at a time. */
  on(threadId: ThreadId | undefined): OpenAttempt | undefined {
    return threadId === undefined ? undefined : this.#open.get(threadId)
  }

  /** That of a run which is a function; many of them may share a thread. */
  ofFunction(runId: string): OpenAttempt | undefined {
    return this.#functions.get(runId)
  }

  /** A function is at work. Returns how to say that it is over. */
  functionBegins(open: OpenAttempt): () => void {
    this.#functions.set(open.runId, open)
    return () => {
      if (this.#functions.get(open.runId) === open) this.#functions.delete(open.runId)
    }
  }

  /** Carries out an attempt. Trouble with telemetry is none of the run. */
  async around(claim: Claim, work: () => Promise<void>): Promise<void> {
    const { api, instruments } = this.#options
    const { run, attempt } = claim
    if (attempt.number === 1)
      instruments.queueSeconds.record(seconds(attempt.claimedAt - run.createdAt), { [GEN_AI.agent]: run.agent })
    const open = await this.#begin(claim)
    this.#open.set(run.threadId, open)
    try {
      await api.context.with(open.context, work)
    } catch (error) {
      open.span.addEvent('not carried out', { error: shown(describeError(error)) })
      throw error
    } finally {
      if (this.#open.get(run.threadId) === open) this.#open.delete(run.threadId)
      await this.#end(claim, open.span)
    }
  }

  async #begin({ run, attempt }: Claim): Promise<OpenAttempt> {
    const { api, store } = this.#options
    const isAgent = isAnAgent(run.request)
    const { parent, links } = await this.#relatives(run)
    const root = parent === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, parent)
    const attributes: Attributes = {
      ...(isAgent ? { [GEN_AI.operation]: 'invoke_agent' } : {}),
      [GEN_AI.agent]: run.agent,
      [GEN_AI.conversation]: run.threadId,
      [HOLDFAST.run]: run.id,
      [HOLDFAST.attempt]: attempt.number,
    }
    const name = `${isAgent ? 'invoke_agent' : 'run'} ${run.agent}`
    const span = api.trace
      .getTracer('holdfast')
      .startSpan(name, { kind: api.SpanKind.INTERNAL, attributes, links }, root)
    const own = span.spanContext()
    const ref = { id: attempt.id, runId: run.id, fence: run.fence }
    if (api.isSpanContextValid(own))
      await this.#orWarn(() => store.apply(noteTrace, ref, attempt.number, traceparentOf(own)))
    return { runId: run.id, claimedAt: attempt.claimedAt, span, context: api.trace.setSpan(root, span) }
  }

  /** The attempt before this one is referred to; the run that waits for this one is its parent. */
  async #relatives(run: Run): Promise<{ readonly parent: SpanContext | undefined; readonly links: Link[] }> {
    const before = run.attempt > 1 ? await this.#traceOf(run.id) : undefined
    const starter = run.parentRunId === null ? undefined : await this.#traceOf(run.parentRunId)
    const isApart = run.parentMode === 'detached'
    const linked = [before, isApart ? starter : undefined].filter((each) => each !== undefined)
    return { parent: isApart ? undefined : starter, links: linked.map((context) => ({ context })) }
  }

  async #traceOf(runId: RunId): Promise<SpanContext | undefined> {
    const traced = await this.#orWarn(() => this.#options.store.read(traceOf, runId))
    return traced === undefined ? undefined : contextOf(traced.data.traceparent)
  }

  async #end({ run: claimed, attempt }: Claim, span: Span): Promise<void> {
    const { api, store, instruments, content } = this.#options
    const run = await this.#orWarn(() => store.read(findRun, claimed.id))
    if (run === undefined || run.attempt !== attempt.number) {
      span.setAttribute(HOLDFAST.runState, 'superseded')
      return span.end()
    }
    span.setAttributes({ [HOLDFAST.runState]: run.state, ...usageOf(run) })
    if (run.state === 'failed') {
      span.setAttribute(ERROR_TYPE, run.code ?? 'failed')
      // It may quote what a command printed.
      const message = content && run.error !== null ? { message: shown(run.error) } : {}
      span.setStatus({ code: api.SpanStatusCode.ERROR, ...message })
    }
    if (run.endedAt !== null) {
      const workedMs = run.endedAt - (run.startedAt ?? run.endedAt) - run.parkedMs
      const code = run.state === 'failed' ? { [ERROR_TYPE]: run.code ?? 'failed' } : {}
      const about = { [GEN_AI.agent]: run.agent, [HOLDFAST.runState]: run.state, ...code }
      instruments.runSeconds.record(seconds(workedMs), about)
      this.#tellTokens(run)
    }
    span.end()
  }

  /** A client makes its model calls itself, and says afterwards what they cost. */
  #tellTokens({ request, inputTokens, outputTokens }: Run): void {
    if (request.kind !== 'command' || request.client === undefined) return
    const { tokens } = this.#options.instruments
    const about = { [GEN_AI.operation]: 'invoke_agent', [GEN_AI.provider]: request.client.vendor }
    tokens.record(inputTokens, { ...about, [GEN_AI.tokenType]: 'input' })
    tokens.record(outputTokens, { ...about, [GEN_AI.tokenType]: 'output' })
  }

  async #orWarn<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      this.#options.warn(`telemetry misses something: ${describeError(error)}`)
      return undefined
    }
  }
}

const seconds = (ms: number) => Math.max(0, ms) / 1000

const isAnAgent = (request: RunRequest) => request.kind !== 'command' || request.isTurn === true

/** What the run has cost so far, over all its attempts. */
const usageOf = ({ inputTokens, outputTokens, costMicrousd }: Run): Attributes =>
  inputTokens + outputTokens === 0
    ? {}
    : {
        [GEN_AI.inputTokens]: inputTokens,
        [GEN_AI.outputTokens]: outputTokens,
        [HOLDFAST.cost]: costMicrousd / 1_000_000,
      }

const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext) =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`

function contextOf(traceparent: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}
