import type { Context, Span } from '@opentelemetry/api'

import type { FunctionBody, FunctionRun, StepOptions } from '../define/function.ts'
import type { Api } from './api.ts'
import { ERROR_TYPE, GEN_AI, HOLDFAST } from './conventions.ts'

/** A span for each attempt at a call of a function, and below it one for each of its steps. */
export function tracedBody(api: Api, name: string, body: FunctionBody): FunctionBody {
  return (run: FunctionRun<never>) => {
    const attributes = {
      [GEN_AI.operation]: 'invoke_workflow',
      [GEN_AI.workflow]: name,
      [HOLDFAST.run]: run.id,
      [HOLDFAST.attempt]: run.attempt,
    }
    const tracer = api.trace.getTracer('holdfast')
    const span = tracer.startSpan(
      `invoke_workflow ${name}`,
      { kind: api.SpanKind.INTERNAL, attributes },
      api.ROOT_CONTEXT,
    )
    const context = api.trace.setSpan(api.ROOT_CONTEXT, span)
    return within(api, span, context, () => body(tracedSteps(api, context, run)))
  }
}

/** The same run, whose steps have spans; whatever else it can do, it does itself. */
function tracedSteps(api: Api, parent: Context, run: FunctionRun<never>): FunctionRun<never> {
  const step = tracedStep(api, parent, run)
  return new Proxy(run, {
    get(target, name) {
      if (name === 'step') return step
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function tracedStep(api: Api, parent: Context, run: FunctionRun<never>): FunctionRun['step'] {
  return async (name, work, options: StepOptions = {}) => {
    const attributes = {
      [GEN_AI.operation]: 'execute_tool',
      [GEN_AI.tool]: name,
      [HOLDFAST.run]: run.id,
      [HOLDFAST.step]: name,
      [HOLDFAST.effect]: options.effect ?? 'write',
      // Changed below when it is: what the record has is not done again.
      [HOLDFAST.outcome]: 'recorded',
    }
    const span = api.trace.getTracer('holdfast').startSpan(`execute_tool ${name}`, { attributes }, parent)
    const inside = api.trace.setSpan(parent, span)
    const performed: typeof work = (call) => {
      span.setAttribute(HOLDFAST.outcome, 'performed')
      return api.context.with(inside, () => work(call))
    }
    return within(api, span, inside, () => run.step(name, performed, options))
  }
}

/** A function that is left where it is never comes back: its span is not ended and nobody hears of it, as after a crash. */
async function within<T>(api: Api, span: Span, context: Context, work: () => T | PromiseLike<T>): Promise<T> {
  try {
    return await api.context.with(context, work)
  } catch (error) {
    span.setAttribute(ERROR_TYPE, error instanceof Error ? error.name : 'Error')
    span.setStatus({ code: api.SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}
