import type { Attributes, Histogram, ObservableResult } from '@opentelemetry/api'

import { countMatters } from '../actions/desk.ts'
import { describeError } from '../base/errors.ts'
import { RUN_STATES, countRuns } from '../runs/run.ts'
import type { Store } from '../store/store.ts'
import { countMessages } from '../threads/message.ts'
import type { Api } from './api.ts'

/** As the conventions have them: four times as much from one to the next, twice as long. */
const TOKEN_STEPS = Array.from({ length: 14 }, (_, power) => 4 ** power)
const SECOND_STEPS = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)
/** From what nobody notices to a day. */
const WAIT_STEPS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 86_400]

/** What is counted here, by this process, as it happens. */
export interface Instruments {
  readonly tokens: Histogram
  readonly modelSeconds: Histogram
  readonly runSeconds: Histogram
  readonly queueSeconds: Histogram
  readonly lateSeconds: Histogram
}

interface Place {
  readonly api: Api
  readonly store: Store
  readonly warn: (message: string) => void
}

export function openInstruments(api: Api): Instruments {
  const meter = api.metrics.getMeter('holdfast')
  const histogram = (name: string, unit: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } })
  return {
    tokens: histogram('gen_ai.client.token.usage', '{token}', 'Tokens of a model call.', TOKEN_STEPS),
    modelSeconds: histogram('gen_ai.client.operation.duration', 's', 'How long a model call took.', SECOND_STEPS),
    runSeconds: histogram(
      'holdfast.run.duration',
      's',
      'Runs that ended, by state; parked time not counted.',
      WAIT_STEPS,
    ),
    queueSeconds: histogram('holdfast.run.queue_wait', 's', 'How long a run waited for a worker.', WAIT_STEPS),
    lateSeconds: histogram(
      'holdfast.schedule.lateness',
      's',
      'How late after its due instant a job fired.',
      WAIT_STEPS,
    ),
  }
}

/**
 * What is so at this moment, looked up when somebody collects. It is that of the store, so every daemon on it tells the same:
 * take the largest of them and not the sum. Returns how to stop.
 */
export function openGauges({ api, store, warn }: Place): () => void {
  const meter = api.metrics.getMeter('holdfast')
  const gauges = GAUGES.map(({ name, description, read }) => {
    const gauge = meter.createObservableGauge(name, { description })
    const observe = (result: ObservableResult) =>
      read(store, result).catch((error: unknown) => warn(`${name} could not be told: ${describeError(error)}`))
    gauge.addCallback(observe)
    return () => gauge.removeCallback(observe)
  })
  return () => {
    for (const stop of gauges) stop()
  }
}

interface Gauge {
  readonly name: string
  readonly description: string
  readonly read: (store: Store, result: { observe(value: number, attributes?: Attributes): void }) => Promise<void>
}

const GAUGES: readonly Gauge[] = [
  {
    name: 'holdfast.runs',
    description: 'Runs in the store, by state.',
    async read(store, result) {
      const counts = new Map((await store.read(countRuns)).map(({ state, count }) => [state, count]))
      for (const state of RUN_STATES) result.observe(counts.get(state) ?? 0, { 'holdfast.run.state': state })
    },
  },
  {
    name: 'holdfast.approvals.waiting',
    description: 'Writes that wait for a yes or a no.',
    read: async (store, result) => result.observe((await store.read(countMatters)).approvals),
  },
  {
    name: 'holdfast.actions.in_doubt',
    description: 'Writes that may or may not have happened.',
    read: async (store, result) => result.observe((await store.read(countMatters)).doubts),
  },
  {
    name: 'holdfast.inbox.pending',
    description: 'Messages that nobody has taken yet.',
    async read(store, result) {
      const pending = (await store.read(countMessages)).find(({ state }) => state === 'pending')
      result.observe(pending?.count ?? 0)
    },
  },
]
