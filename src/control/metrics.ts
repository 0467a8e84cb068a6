import { countMatters } from '../actions/desk.ts'
import { lastEventSeq } from '../events/event.ts'
import { blockedQuotas } from '../model/quota.ts'
import { openBreakers } from '../runs/breaker.ts'
import { RUN_STATES, countRuns } from '../runs/run.ts'
import { totalUsage } from '../runs/series.ts'
import { MESSAGE_STATES, countMessages } from '../threads/message.ts'
import type { Desk } from './desk.ts'

type Labels = Readonly<Record<string, string>>
type Sample = readonly [Labels, number]

/** Prometheus text. Everything is counted in the store, so every daemon on it tells the same. */
export async function metrics(desk: Desk, streams: number): Promise<string> {
  const runs = new Map((await desk.read(countRuns)).map(({ state, count }) => [state, count]))
  const messages = new Map((await desk.read(countMessages)).map(({ state, count }) => [state, count]))
  const needed = await desk.read(countMatters)
  const [used] = await desk.read(totalUsage)
  const breakers = await desk.read(openBreakers)
  const quotas = await desk.read(blockedQuotas)
  const { seq } = await desk.read(lastEventSeq)
  return [
    metric('holdfast_runs', 'gauge', 'Runs by state.', byState(RUN_STATES, runs)),
    metric('holdfast_messages', 'gauge', 'Messages by state.', byState(MESSAGE_STATES, messages)),
    metric('holdfast_approvals_pending', 'gauge', 'Writes that wait for a yes or a no.', [[{}, needed.approvals]]),
    metric('holdfast_doubts_open', 'gauge', 'Writes that may or may not have happened.', [[{}, needed.doubts]]),
    metric('holdfast_breakers_open', 'gauge', 'Agents whose credentials are refused.', [[{}, breakers.length]]),
    metric('holdfast_quotas_blocked', 'gauge', 'Accounts whose provider said to wait.', [[{}, quotas.length]]),
    metric('holdfast_tokens_total', 'counter', 'Tokens that models were paid for.', [
      [{ direction: 'input' }, used?.inputTokens ?? 0],
      [{ direction: 'output' }, used?.outputTokens ?? 0],
    ]),
    metric('holdfast_cost_usd_total', 'counter', 'What models cost.', [[{}, (used?.costMicrousd ?? 0) / 1_000_000]]),
    metric('holdfast_events_total', 'counter', 'The number of the last event.', [[{}, seq]]),
    metric('holdfast_event_streams', 'gauge', 'Readers of the event stream of this daemon.', [[{}, streams]]),
  ].join('')
}

const byState = (states: readonly string[], counts: ReadonlyMap<string, number>): Sample[] =>
  states.map((state) => [{ state }, counts.get(state) ?? 0])

function metric(name: string, type: 'gauge' | 'counter', help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text}"`)
    return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
  })
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n')
}
