import type { Attributes, Context, Span } from '@opentelemetry/api'

import { isSettled } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { LIMITS } from '../base/limits.ts'
import type { Tool } from '../loop/ports.ts'
import type { Api } from './api.ts'
import type { Attempts, OpenAttempt } from './attempts.ts'
import { argumentsOf, resultOf, shown } from './content.ts'
import { ERROR_TYPE, GEN_AI, HOLDFAST } from './conventions.ts'

export interface ToolCallPorts {
  readonly api: Api
  readonly attempts: Attempts
  readonly content: boolean
}

interface Doing {
  readonly span: Span
  readonly context: Context
}

/**
 * A span for each action: `execute_tool NAME`. It is open from the intent to the outcome; what the tool itself traces is below
 * it. An action that was not performed here (answered from the record, denied, settled by evidence) has one without length.
 */
export class ToolCalls {
  readonly #ports: ToolCallPorts
  readonly #doing = new Map<string, Doing>()
  /** What was not performed and has been told: a function comes to it again whenever it goes on. */
  readonly #told = new Set<string>()

  constructor(ports: ToolCallPorts) {
    this.#ports = ports
  }

  /** What the loop says of an action, when it begins and when it is settled. */
  heard(action: Action): void {
    if (action.state === 'started') return void this.#begin(action)
    const attempt = this.#attemptOf(action)
    if (action.state === 'waiting')
      return void attempt?.span.addEvent('approval.waiting', {
        [GEN_AI.tool]: action.tool,
        [HOLDFAST.action]: action.id,
      })
    if (!isSettled(action.state) || attempt === undefined) return
    const doing = this.#doing.get(action.id)
    // An earlier attempt performed it, and had its span: a run that goes on looks at the whole of its last reply again.
    if (doing === undefined && (action.settledAt ?? attempt.claimedAt) < attempt.claimedAt && action.startedAt !== null)
      return
    if (doing !== undefined || this.#isNews(`${action.id} ${action.state}`))
      this.#end(action, doing ?? this.#begin(action))
  }

  #attemptOf({ runId, threadId }: Action): OpenAttempt | undefined {
    const { attempts } = this.#ports
    return attempts.ofFunction(runId) ?? attempts.on(threadId)
  }

  #isNews(what: string): boolean {
    if (this.#told.has(what)) return false
    if (this.#told.size >= LIMITS.telemetryTold) this.#told.clear()
    this.#told.add(what)
    return true
  }

  /** The same tools, performing inside of the spans of their actions. */
  around(tools: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
    return new Map([...tools].map(([name, tool]) => [name, this.#aroundOne(tool)]))
  }

  #aroundOne(tool: Tool): Tool {
    const { api, attempts } = this.#ports
    return {
      ...tool,
      perform: (input, context) => {
        const around = this.#doing.get(context.key)?.context ?? attempts.on(context.threadId)?.context
        return around === undefined
          ? tool.perform(input, context)
          : api.context.with(around, () => tool.perform(input, context))
      },
    }
  }

  #begin(action: Action): Doing {
    const { api, attempts, content } = this.#ports
    // A loop inside of a function may be a tool itself: what it does is below that.
    const parent = attempts.on(action.threadId)?.context ?? api.context.active()
    const attributes: Attributes = {
      [GEN_AI.operation]: 'execute_tool',
      [GEN_AI.tool]: action.tool,
      [GEN_AI.toolType]: 'function',
      [GEN_AI.toolCall]: action.callId,
      [GEN_AI.conversation]: action.threadId,
      [HOLDFAST.run]: action.runId,
      [HOLDFAST.action]: action.id,
      [HOLDFAST.effect]: action.effect,
      ...(content ? argumentsOf(action.input) : {}),
    }
    const name = `execute_tool ${action.tool}`
    const span = api.trace.getTracer('holdfast').startSpan(name, { kind: api.SpanKind.INTERNAL, attributes }, parent)
    const doing = { span, context: api.trace.setSpan(parent, span) }
    if (!isSettled(action.state)) this.#doing.set(action.id, doing)
    return doing
  }

  #end(action: Action, { span }: Doing): void {
    const { api, content } = this.#ports
    this.#doing.delete(action.id)
    span.setAttributes({
      [HOLDFAST.outcome]: outcomeOf(action),
      ...(action.settledBy === null ? {} : { [HOLDFAST.settledBy]: action.settledBy }),
      ...(action.repeatOf === null ? {} : { [HOLDFAST.repeatOf]: action.repeatOf }),
      ...(content && action.result !== null ? resultOf(action.result) : {}),
    })
    if (action.state === 'failed' || action.state === 'in_doubt') {
      span.setAttribute(ERROR_TYPE, action.state)
      // What a tool says of its failure may quote its arguments.
      const message = content && action.error !== null ? { message: shown(action.error) } : {}
      span.setStatus({ code: api.SpanStatusCode.ERROR, ...message })
    }
    span.end()
  }
}

/** `performed`; `recorded`: an identical one was, and this is its result; or the state that says why not. */
function outcomeOf({ state, repeatOf }: Action): string {
  if (state !== 'done') return state
  return repeatOf === null ? 'performed' : 'recorded'
}
