import type { Context, Span } from '@opentelemetry/api'

import type { Clock } from '../base/clock.ts'
import type { RunId } from '../base/ids.ts'
import type { FunctionBody, FunctionRun, StepOptions } from '../define/function.ts'
import type { Api } from './api.ts'
import type { Attempts } from './attempts.ts'
import { ERROR_TYPE, GEN_AI, HOLDFAST } from './conventions.ts'

interface BodyPorts {
  readonly api: Api
  readonly clock: Clock
  readonly attempts: Attempts
}

/** A span for each attempt at a call of a function, and below it one for each of its steps. */
export function tracedBody({ api, clock, attempts }: BodyPorts, name: string, body: FunctionBody): FunctionBody {
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
    const over = attempts.functionBegins({ runId: run.id as RunId, claimedAt: clock.now(), span, context })
    const ended = endsOnce(span, over)
    void haltOf(run)?.then(({ kind }) => {
      span.setAttribute(HOLDFAST.runState, STATES[kind])
      ended()
    })
    return within(api, { span, ended }, context, () => body(tracedSteps(api, context, run)))
  }
}

interface Halting {
  readonly halted?: Promise<{ readonly kind: keyof typeof STATES }>
}

/** In which state a function is left where it is: it never comes back, so its span ends there. */
const STATES = { undecided: 'parked', waits: 'parked', stopped: 'cancelled', broken: 'failed' } as const

const haltOf = (run: FunctionRun<never>) => (run as Halting).halted

function endsOnce(span: Span, over: () => void = () => {}): () => void {
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    span.end()
    over()
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
    return within(api, { span, ended: () => span.end() }, inside, () => run.step(name, performed, options))
  }
}

interface Spanned {
  readonly span: Span
  readonly ended: () => void
}

/** A step that is left where it is never comes back: its span is not ended and nobody hears of it, as after a crash. */
async function within<T>(
  api: Api,
  { span, ended }: Spanned,
  context: Context,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  try {
    return await api.context.with(context, work)
  } catch (error) {
    span.setAttribute(ERROR_TYPE, error instanceof Error ? error.name : 'Error')
    span.setStatus({ code: api.SpanStatusCode.ERROR })
    throw error
  } finally {
    ended()
  }
}
