import type { Attributes, Span } from '@opentelemetry/api'

import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import type { AskModel, Asked, ModelReply } from '../loop/ports.ts'
import type { Api } from './api.ts'
import type { Attempts } from './attempts.ts'
import { contentOfReply, contentOfRequest, shown } from './content.ts'
import { ERROR_TYPE, GEN_AI, HOLDFAST, modelNames } from './conventions.ts'
import type { Instruments } from './instruments.ts'

export interface ModelCallPorts {
  readonly api: Api
  readonly clock: Clock
  readonly attempts: Attempts
  readonly instruments: Instruments
  readonly content: boolean
}

/** Whose call of which model; of a loop inside of a function also for which run. */
export interface Asking {
  readonly agent: string
  readonly model: string
  readonly runId?: RunId
}

/** A span for each call of a model, its tries and waits included: `chat MODEL`. */
export function tracedAsk(ports: ModelCallPorts, { agent, model: id, runId }: Asking, ask: AskModel): AskModel {
  const { api, clock, attempts } = ports
  const { provider, model } = modelNames(id)
  const names: Attributes = { [GEN_AI.operation]: 'chat', [GEN_AI.provider]: provider, [GEN_AI.model]: model }
  return async (request, options) => {
    const { threadId, purpose } = request
    // A loop inside of a function is below whatever is around it there.
    const parent = runId === undefined ? attempts.on(threadId) : undefined
    const run = runId ?? parent?.runId
    const attributes = {
      ...names,
      [GEN_AI.agent]: agent,
      [HOLDFAST.purpose]: purpose,
      ...(threadId === undefined ? {} : { [GEN_AI.conversation]: threadId }),
      ...(run === undefined ? {} : { [HOLDFAST.run]: run }),
      ...(ports.content ? contentOfRequest(request) : {}),
    }
    const context = parent?.context ?? api.context.active()
    const span = api.trace
      .getTracer('holdfast')
      .startSpan(`chat ${model}`, { kind: api.SpanKind.CLIENT, attributes }, context)
    const beganAt = clock.monotonicMs()
    const onRetry: typeof options.onRetry = (failed) => {
      span.addEvent('retry', { error: shown(describeError(failed.error)), wait_ms: failed.waitMs })
      options.onRetry?.(failed)
    }
    try {
      const asked = await api.context.with(api.trace.setSpan(context, span), () =>
        ask(request, { ...options, onRetry }),
      )
      tell(ports, span, names, asked, clock.monotonicMs() - beganAt)
      return asked
    } finally {
      span.end()
    }
  }
}

const FINISHED: Readonly<Record<ModelReply['finish'], string>> = {
  stop: 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  refusal: 'content_filter',
}

function tell(
  { api, instruments, content }: ModelCallPorts,
  span: Span,
  names: Attributes,
  asked: Asked,
  tookMs: number,
): void {
  const { inputTokens, outputTokens, costMicrousd } = asked.spent
  const error = asked.kind === 'failed' ? { [ERROR_TYPE]: asked.code } : {}
  instruments.tokens.record(inputTokens, { ...names, [GEN_AI.tokenType]: 'input' })
  instruments.tokens.record(outputTokens, { ...names, [GEN_AI.tokenType]: 'output' })
  instruments.modelSeconds.record(tookMs / 1000, { ...names, ...error })
  span.setAttributes({
    [GEN_AI.inputTokens]: inputTokens,
    [GEN_AI.outputTokens]: outputTokens,
    [HOLDFAST.cost]: costMicrousd / 1_000_000,
    ...error,
  })
  if (asked.kind === 'replied') {
    span.setAttribute(GEN_AI.finishReasons, [FINISHED[asked.reply.finish]])
    if (content) span.setAttributes(contentOfReply(asked.reply))
  } else if (asked.kind === 'failed') {
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: shown(asked.error) })
  } else {
    // Neither is an error: it was told to wait longer than a process should, or somebody does not want the answer any more.
    span.addEvent(asked.kind === 'park' ? 'parked' : 'cancelled')
  }
}
