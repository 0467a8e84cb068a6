import type { Event, Run, RunState } from '../api/shapes.ts'
import { outcome, subject } from '../look/runs.ts'
import { shownRun } from '../look/states.ts'
import { asText, money, shortId, visible } from '../look/words.ts'
import { Choice, List } from '../parts/list.tsx'
import { PageFrame } from '../parts/page.tsx'
import { Ago, Empty, Lasted, State } from '../parts/small.tsx'
import { usePaged } from '../state/paged.ts'
import { search } from '../state/router.ts'

const FILTERS: readonly (readonly [string, string])[] = [
  ['', 'All'],
  ['running,queued', 'Running'],
  ['parked', 'Waiting'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
]

/** What an event says about a run that is listed, without asking for it. */
function heard(run: Run, { type, runId, at, data }: Event): Run {
  if (runId !== run.id) return run
  if (type === 'run.started') return { ...run, state: 'running', startedAt: run.startedAt ?? at }
  if (type === 'run.resumed' || type === 'run.requeued') return { ...run, state: 'queued' }
  if (type === 'run.parked') return { ...run, state: 'parked', parkedAt: at, parkedFor: asText(data['waitsFor'] ?? '') }
  if (type === 'run.cancel_requested') return { ...run, cancelRequestedAt: at }
  if (type !== 'run.finished') return run
  return { ...run, state: (data['state'] as RunState | undefined) ?? run.state, endedAt: at }
}

export function Runs() {
  const state = search.value.get('state') ?? ''
  const agent = search.value.get('agent') ?? undefined
  const pages = usePaged(
    'runs.list',
    { ...(state === '' ? {} : { state: state.split(',') as RunState[] }), ...(agent === undefined ? {} : { agent }) },
    { id: ({ id }) => id, wakes: ['run.'], patch: heard },
  )
  return (
    <PageFrame
      title={agent === undefined ? 'Runs' : `Runs of ${visible(agent)}`}
      filled
      side={<Choice name="state" label="State" options={FILTERS} value={state} />}
    >
      <List
        pages={pages}
        label="Runs"
        id={(run) => run.id}
        href={(run) => `/runs/${run.id}`}
        row={(run) => <RunRow run={run} />}
        head={HEAD}
        empty={
          <Empty title={state === '' ? 'No runs yet' : 'No such runs'}>
            A run is one execution: a turn of an agent, or a command started with{' '}
            <code class="font-mono">holdfast run</code>.
          </Empty>
        }
      />
    </PageFrame>
  )
}

const COLUMNS =
  'grid h-full items-center gap-x-4 px-4 md:px-6 grid-cols-[1fr_auto] md:grid-cols-[8rem_8rem_minmax(0,1fr)_7rem_6rem_4.5rem_5.5rem]'

const HEAD = (
  <div class={COLUMNS}>
    <span>State</span>
    <span>Agent</span>
    <span>What</span>
    <span>Run</span>
    <span class="text-right">Took</span>
    <span class="text-right">Cost</span>
  </div>
)

const RunRow = ({ run }: { readonly run: Run }) => (
  <div class={`${COLUMNS} max-md:content-center`}>
    <span class="flex min-w-0 gap-3">
      <State state={shownRun(run)} />
      <span class="truncate font-medium md:hidden">{visible(run.agent)}</span>
    </span>
    <span class="truncate font-medium max-md:hidden">{visible(run.agent)}</span>
    <span class="min-w-0 truncate max-md:col-span-2 max-md:row-start-2">
      {run.request.kind === 'command' && <span class="font-mono text-sm">{subject(run)} </span>}
      <span class="text-quiet">{outcome(run)}</span>
    </span>
    <span class="text-quiet truncate font-mono text-xs max-md:hidden" title={run.id}>
      {shortId(run.id)}
    </span>
    <span class="text-right max-md:hidden">
      <Lasted from={run.startedAt} to={run.endedAt} />
    </span>
    <span class="text-quiet text-right max-md:hidden">{money(run.usage.costUsd)}</span>
    <span class="text-quiet text-right text-sm max-md:col-start-2 max-md:row-start-1">
      <Ago at={run.createdAt} />
    </span>
  </div>
)
