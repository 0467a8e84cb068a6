import type { Clock } from '../base/clock.ts'
import { sleep } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { FunctionBody } from '../define/function.ts'
import type { LoopEvent } from '../loop/loop.ts'
import type { AskModel, Tool } from '../loop/ports.ts'
import type { Claim } from '../runs/claim.ts'
import type { Store } from '../store/store.ts'
import { loadApi } from './api.ts'
import type { Api } from './api.ts'
import { Attempts } from './attempts.ts'
import { tracedBody } from './functions.ts'
import { openGauges, openInstruments } from './instruments.ts'
import { tracedAsk } from './model-calls.ts'
import { ToolCalls } from './tool-calls.ts'
import type { TelemetrySettings } from './wanted.ts'

export interface TelemetryOptions {
  readonly settings: TelemetrySettings | false | undefined
  /** Where the user's packages are. */
  readonly folder: string
  readonly store: Store
  readonly clock: Clock
  readonly warn: (message: string) => void
}

/** What a worker does, told to OpenTelemetry: wrappers of what it works with, so that no part of the work knows of it. */
export interface Telemetry {
  readonly attempt: (claim: Claim, work: () => Promise<void>) => Promise<void>
  /** `runId`: of a loop inside of a function, which may ask other models than its own. */
  readonly ask: (agent: string, model: string, ask: AskModel, runId?: RunId) => AskModel
  readonly tools: (tools: ReadonlyMap<string, Tool>) => ReadonlyMap<string, Tool>
  readonly body: (name: string, body: FunctionBody) => FunctionBody
  readonly heard: (event: LoopEvent) => void
  /** A schedule fired so long after its due instant. */
  readonly fired: (lateMs: number) => void
  close(): Promise<void>
}

/** Undefined: it was not asked for by name, and the package is not there. */
export async function openTelemetry(options: TelemetryOptions): Promise<Telemetry | undefined> {
  const { settings, folder, store, clock, warn } = options
  const api = await loadApi(folder).catch((error: unknown) => {
    // Who only has the variables may mean another program.
    if (settings !== undefined) throw error
    warn(`OTEL_EXPORTER_OTLP_ENDPOINT is set, but ${describeError(error)}`)
    return undefined
  })
  if (api === undefined) return undefined
  const content = settings !== undefined && settings !== false && settings.content
  const instruments = openInstruments(api)
  const attempts = new Attempts({ api, store, instruments, content, warn })
  const toolCalls = new ToolCalls({ api, attempts, content })
  const stopGauges = openGauges({ api, store, warn })
  return {
    attempt: (claim, work) => attempts.around(claim, work),
    ask: (agent, model, ask, runId) => {
      const asking = { agent, model, ...(runId === undefined ? {} : { runId }) }
      return tracedAsk({ api, clock, attempts, instruments, content }, asking, ask)
    },
    tools: (tools) => toolCalls.around(tools),
    body: (name, body) => tracedBody({ api, clock, attempts }, name, body),
    heard: (event) => {
      if (event.kind === 'action') toolCalls.heard(event.action)
    },
    fired: (lateMs) => instruments.lateSeconds.record(Math.max(0, lateMs) / 1000),
    async close() {
      await Promise.race([flush(api), sleep(clock, LIMITS.telemetryFlushMs, undefined, { ref: false })]).catch(
        (error: unknown) => warn(`telemetry may miss the last seconds: ${describeError(error)}`),
      )
      stopGauges()
    },
  }
}

interface Flushing {
  forceFlush?: () => Promise<void>
  getDelegate?: () => Flushing
}

/** The SDK is the user's; what it has gathered is sent before the process ends, if it can be asked to. */
async function flush(api: Api): Promise<void> {
  const tracers = api.trace.getTracerProvider() as Flushing
  const meters = api.metrics.getMeterProvider() as Flushing
  await Promise.all([(tracers.getDelegate?.() ?? tracers).forceFlush?.(), meters.forceFlush?.()])
}
