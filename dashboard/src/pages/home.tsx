import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'

import type { Run } from '../api/shapes.ts'
import { shownState } from '../look/states.ts'
import { brief, many, money, shortId } from '../look/words.ts'
import { Chart } from '../parts/chart.tsx'
import { Choice } from '../parts/list.tsx'
import { PageFrame, Section, Trouble, Waiting } from '../parts/page.tsx'
import { Ago, Lasted, State } from '../parts/small.tsx'
import { useSteady } from '../parts/steady.tsx'
import { now } from '../state/clock.ts'
import { useKeys } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { go, search } from '../state/router.ts'
import { schedules, useSchedules } from '../state/schedules.ts'
import { subject } from './runs.tsx'
import { Welcome } from './welcome.tsx'
import { useSignal } from '@preact/signals'

/** One thing that a person should look at. */
interface Need {
  readonly key: string
  readonly to: string
  readonly state: string
  readonly what: string
  readonly about: string
  readonly agent: string
  readonly since: string
}

const ASKED = ['approval.', 'run.finished'] as const
const DOUBTED = ['action.settled', 'doubt.', 'run.finished'] as const

/** Oldest first within each kind: what comes is added at the end, and nothing moves. */
function useNeeds(): readonly Need[] | undefined {
  useSchedules()
  const approvals = useResource('approvals.list', {}, ASKED).data.value?.items
  const doubts = useResource('doubts.list', {}, DOUBTED).data.value?.items
  const dead = useResource('dead.list', { limit: 50 }, ['message.']).data.value?.items
  const breakers = useResource('breakers.list', {}, ['breaker.']).data.value?.items
  if (approvals === undefined || doubts === undefined) return undefined
  const paused = (schedules.value ?? []).filter(({ state }) => state === 'paused')
  return [
    ...approvals.map(({ id, tool, input, agent, askedAt }) => ({
      key: id,
      to: `/approvals/${id}`,
      state: 'waiting',
      what: tool,
      about: brief(input),
      agent,
      since: askedAt,
    })),
    ...doubts.map(({ id, tool, input, agent, startedAt, createdAt }) => ({
      key: id,
      to: `/doubts/${id}`,
      state: 'in_doubt',
      what: tool,
      about: brief(input),
      agent,
      since: startedAt ?? createdAt,
    })),
    ...(dead ?? []).map(({ id, kind, reason, threadId, createdAt }) => ({
      key: id,
      to: `/inbox/${id}`,
      state: 'dead',
      what: kind,
      about: reason ?? '',
      agent: shortId(threadId),
      since: createdAt,
    })),
    ...paused.map(({ id, name, reason, when, createdAt }) => ({
      key: id,
      to: `/schedules/${id}`,
      state: 'paused',
      what: name,
      about: reason ?? when,
      agent: 'schedule',
      since: createdAt,
    })),
    ...(breakers ?? []).flatMap(({ agent, cause, openUntil }) =>
      openUntil === undefined
        ? []
        : [
            {
              key: `breaker ${agent}`,
              to: '/quotas',
              state: 'stopped',
              what: agent,
              about: `its provider refuses it: ${cause}`,
              agent,
              since: openUntil,
            },
          ],
    ),
  ]
}

export function Home() {
  const status = useResource('status', {}, ['run.', 'approval.', 'doubt.', 'message.'])
  const needs = useNeeds()
  const { data } = status
  const total = Object.values(data.value?.runs ?? {}).reduce((sum, each) => sum + each, 0)
  if (data.value !== undefined && total === 0 && Object.keys(data.value.messages).length === 0) return <Welcome />
  return (
    <PageFrame title="Home" side={data.value !== undefined && <Summary runs={data.value.runs} />}>
      <div class="mx-auto max-w-5xl">
        <Trouble problem={status.problem.value} />
        <NeedsYou needs={needs} />
        <Running runs={data.value?.active} />
        <Throughput />
      </div>
    </PageFrame>
  )
}

const Summary = ({ runs }: { readonly runs: Readonly<Record<string, number>> }) => (
  <span class="text-quiet text-sm max-md:hidden">
    {[
      many(runs['running'] ?? 0, 'running', 'running'),
      `${runs['queued'] ?? 0} queued`,
      `${runs['parked'] ?? 0} waiting`,
    ].join(' · ')}
  </span>
)

function NeedsYou({ needs }: { readonly needs: readonly Need[] | undefined }) {
  const chosen = useSignal(-1)
  const { shown, gone, hover } = useSteady(needs ?? [], ({ key }) => key)
  const move = (by: number) => {
    chosen.value = Math.max(0, Math.min(shown.length - 1, chosen.value + by))
    document.querySelector(`[data-need="${chosen.value}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  const open = () => {
    const need = shown[chosen.value]
    if (need !== undefined) go(need.to)
  }
  useKeys('Needs you', { j: ['next', () => move(1)], k: ['previous', () => move(-1)], Enter: ['open', open] })
  if (needs === undefined)
    return (
      <Section title="Needs you">
        <Waiting rows={3} />
      </Section>
    )
  return (
    <Section
      title="Needs you"
      side={<span class="text-quiet text-xs">{needs.length === 0 ? '' : many(needs.length, 'thing')}</span>}
    >
      {shown.length === 0 ? (
        <Quiet>Nothing needs you.</Quiet>
      ) : (
        <ul class="panel overflow-hidden" {...hover}>
          {shown.map((need, index) => (
            <li
              key={need.key}
              class={`row-line last:border-0 ${gone.has(need.key) ? 'opacity-40' : ''}`}
              data-need={index}
            >
              <a
                class="row-link grid min-h-10 grid-cols-[9.5rem_1fr_auto] items-center gap-x-4 px-3 max-md:grid-cols-[1fr_auto] max-md:py-2"
                href={need.to}
                aria-current={chosen.value === index ? 'true' : undefined}
              >
                <State state={need.state} />
                <span class="min-w-0 truncate max-md:order-last max-md:col-span-2">
                  <span class="font-mono text-sm font-semibold">{need.what}</span>{' '}
                  <span class="text-quiet">{need.about}</span>
                </span>
                <span class="text-quiet flex gap-4 text-sm">
                  <span class="max-w-32 truncate max-md:hidden">{need.agent}</span>
                  <span class="w-20 text-right">
                    <Ago at={need.since} />
                  </span>
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

const Quiet = ({ children }: { readonly children: ComponentChildren }) => (
  <p class="panel text-quiet flex min-h-10 items-center px-3">{children}</p>
)

function Running({ runs }: { readonly runs: readonly Run[] | undefined }) {
  const { shown, gone, hover } = useSteady(runs ?? [], ({ id }) => id)
  const all = (
    <a class="link text-xs" href="/runs?state=running,queued">
      All of them
    </a>
  )
  return (
    <Section title="Running" side={all}>
      {runs === undefined ? (
        <Waiting rows={3} />
      ) : shown.length === 0 ? (
        <Quiet>Nothing is running.</Quiet>
      ) : (
        <ul class="panel overflow-hidden" {...hover}>
          {shown.map((run) => (
            <li key={run.id} class={`row-line last:border-0 ${gone.has(run.id) ? 'opacity-40' : ''}`}>
              <RunLine run={run} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

const RunLine = ({ run }: { readonly run: Run }) => (
  <a
    class="row-link grid min-h-10 grid-cols-[9.5rem_1fr_auto] items-center gap-x-4 px-3 max-md:grid-cols-[1fr_auto] max-md:py-2"
    href={`/runs/${run.id}`}
  >
    <State state={shownState(run)} />
    <span class="min-w-0 truncate max-md:order-last max-md:col-span-2">
      <span class="font-medium">{run.request.kind === 'command' ? subject(run) : run.agent}</span>{' '}
      <span class="text-quiet">{run.state === 'parked' ? `for ${run.parkedFor ?? 'something'}` : ''}</span>
    </span>
    <span class="text-quiet flex gap-4 text-sm">
      <span class="w-16 text-right">{money(run.usage.costUsd)}</span>
      <span class="w-20 text-right">
        <Lasted from={run.startedAt ?? run.createdAt} to={undefined} />
      </span>
    </span>
  </a>
)

const HOUR = 3_600_000
const RANGES: readonly (readonly [string, string])[] = [
  ['1h', 'Hour'],
  ['', 'Day'],
  ['7d', 'Week'],
  ['30d', 'Month'],
]
const SPANS: Readonly<Record<string, readonly [number, number]>> = {
  '1h': [HOUR, 60_000],
  '': [24 * HOUR, HOUR / 2],
  '7d': [168 * HOUR, 4 * HOUR],
  '30d': [720 * HOUR, 24 * HOUR],
}

/** The end of the range moves by whole slots, so that it is asked for again only then. */
function Throughput() {
  const range = search.value.get('range') ?? ''
  const [length, bucketMs] = SPANS[range] ?? SPANS['']!
  const end = Math.ceil(now.value / bucketMs) * bucketMs
  const ask = useMemo(
    () => ({ from: new Date(end - length).toISOString(), to: new Date(end).toISOString(), bucketMs }),
    [end, length, bucketMs],
  )
  const { data } = useResource('series', ask, ['run.finished'])
  return (
    <Section title="Throughput and cost" side={<Choice name="range" label="Range" options={RANGES} value={range} />}>
      <Chart key={range} from={end - length} to={end} bucketMs={bucketMs} buckets={data.value?.items ?? []} />
    </Section>
  )
}
