import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'

import type { Run } from '../api/shapes.ts'
import { subject } from '../look/runs.ts'
import { shownRun } from '../look/states.ts'
import { many, money, visible } from '../look/words.ts'
import { Chart } from '../parts/chart.tsx'
import { Choice } from '../parts/list.tsx'
import { PageFrame, Section, Trouble, Waiting } from '../parts/page.tsx'
import { Ago, Lasted, State } from '../parts/small.tsx'
import { useSteady } from '../parts/steady.tsx'
import { now } from '../state/clock.ts'
import { useKeys } from '../state/keys.ts'
import { useNeeds } from '../state/needs.ts'
import type { Need, NeedsOfAKind } from '../state/needs.ts'
import { useResource } from '../state/resource.ts'
import { go, search } from '../state/router.ts'
import { Welcome } from './welcome.tsx'

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
        <NeedsYou kinds={needs} />
        <Running runs={data.value?.active} />
        <Throughput />
      </div>
    </PageFrame>
  )
}

const Summary = ({ runs }: { readonly runs: Readonly<Record<string, number>> }) => (
  <span class="text-quiet text-sm">
    {[`${runs['running'] ?? 0} running`, `${runs['queued'] ?? 0} queued`, `${runs['parked'] ?? 0} waiting`].join(' · ')}
  </span>
)

const LINE =
  'row-link grid min-h-10 grid-cols-[9.5rem_1fr_auto] items-center gap-x-4 px-3 max-md:grid-cols-[1fr_auto] max-md:py-2'

function NeedsYou({ kinds }: { readonly kinds: readonly NeedsOfAKind[] | undefined }) {
  const chosen = useSignal(-1)
  const needs = kinds?.flatMap(({ shown }) => shown) ?? []
  const count = kinds?.reduce((sum, each) => sum + each.count, 0) ?? 0
  const { shown, gone, hover } = useSteady(needs, ({ key }) => key)
  const move = (by: number) => {
    chosen.value = Math.max(0, Math.min(shown.length - 1, chosen.value + by))
    document.querySelector(`[data-need="${chosen.value}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  const open = () => {
    const need = shown[chosen.value]
    if (need !== undefined) go(need.to)
  }
  useKeys('Needs you', { j: ['next', () => move(1)], k: ['previous', () => move(-1)], Enter: ['open', open] })
  const side = <span class="text-quiet text-xs">{count === 0 ? '' : many(count, 'thing')}</span>
  return (
    <Section title="Needs you" side={side}>
      {kinds === undefined ? (
        <Waiting rows={3} />
      ) : shown.length === 0 ? (
        <Quiet>Nothing needs you.</Quiet>
      ) : (
        <div class="panel overflow-hidden" {...hover}>
          <ul>
            {shown.map((need, index) => (
              <li key={need.key} class="row-line last:border-0" data-need={index}>
                <NeedLine need={need} isGone={gone.has(need.key)} isChosen={chosen.value === index} />
              </li>
            ))}
          </ul>
          <More kinds={kinds} />
        </div>
      )}
    </Section>
  )
}

interface NeedProps {
  readonly need: Need
  readonly isGone: boolean
  readonly isChosen: boolean
}

const NeedLine = ({ need, isGone, isChosen }: NeedProps) => (
  <a class={`${LINE} ${isGone ? 'line-through' : ''}`} href={need.to} aria-current={isChosen ? 'true' : undefined}>
    <State state={need.state} />
    <span class="min-w-0 truncate max-md:order-last max-md:col-span-2">
      <span class="font-mono text-sm font-semibold">{need.what}</span> <span class="text-quiet">{need.about}</span>
    </span>
    <span class="text-quiet flex gap-4 text-sm">
      <span class="max-w-32 truncate max-md:hidden">{need.agent}</span>
      <span class="w-20 text-right">
        <Ago at={need.since} />
      </span>
    </span>
  </a>
)

function More({ kinds }: { readonly kinds: readonly NeedsOfAKind[] }) {
  const links = kinds.flatMap(({ more }) => (more === undefined ? [] : [more]))
  if (links.length === 0) return null
  return (
    <p class="border-line bg-sunken flex flex-wrap gap-4 border-t px-3 py-2 text-sm">
      {links.map(({ to, word }) => (
        <a key={to} class="link" href={to}>
          {word}
        </a>
      ))}
    </p>
  )
}

const Quiet = ({ children }: { readonly children: ComponentChildren }) => (
  <p class="panel text-quiet flex min-h-10 items-center px-3">{children}</p>
)

const RUNNING_SHOWN = 8

/** The oldest first: what starts is added at the end. What waits for a person has its own place above. */
function Running({ runs }: { readonly runs: readonly Run[] | undefined }) {
  const going = (runs ?? [])
    .filter(({ parkedFor, state }) => state !== 'parked' || parkedFor !== 'a decision')
    .toReversed()
  const { shown, gone, hover } = useSteady(going, ({ id }) => id)
  const all = (
    <a class="link text-xs" href="/runs?state=running,queued">
      All that run
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
          {shown.slice(0, RUNNING_SHOWN).map((run) => (
            <li key={run.id} class="row-line last:border-0">
              <RunLine run={run} isGone={gone.has(run.id)} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

const RunLine = ({ run, isGone }: { readonly run: Run; readonly isGone: boolean }) => (
  <a class={`${LINE} ${isGone ? 'line-through' : ''}`} href={`/runs/${run.id}`}>
    <State state={shownRun(run)} />
    <span class="min-w-0 truncate max-md:order-last max-md:col-span-2">
      <span class={run.request.kind === 'command' ? 'font-mono text-sm' : 'font-medium'}>
        {run.request.kind === 'command' ? subject(run) : visible(run.agent)}
      </span>{' '}
      <span class="text-quiet">{run.state === 'parked' ? `for ${visible(run.parkedFor ?? 'something')}` : ''}</span>
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
const DAY: readonly [number, number] = [24 * HOUR, HOUR / 2]
const SPANS: Readonly<Record<string, readonly [length: number, bucketMs: number]>> = {
  '1h': [HOUR, 60_000],
  '7d': [168 * HOUR, 4 * HOUR],
  '30d': [720 * HOUR, 24 * HOUR],
}

/** The end of the range moves by whole slots, so that it is asked for anew only then. */
function Throughput() {
  const range = search.value.get('range') ?? ''
  const [length, bucketMs] = SPANS[range] ?? DAY
  const end = Math.ceil(now.value / bucketMs) * bucketMs
  const ask = useMemo(
    () => ({ from: new Date(end - length).toISOString(), to: new Date(end).toISOString(), bucketMs }),
    [end, length, bucketMs],
  )
  const { data } = useResource('series', ask, ['run.finished'])
  return (
    <Section title="Throughput and cost" side={<Choice name="range" label="Range" options={RANGES} value={range} />}>
      <Chart key={range} from={end - length} to={end - 1} bucketMs={bucketMs} buckets={data.value?.items ?? []} />
    </Section>
  )
}
