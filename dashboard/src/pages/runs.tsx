import type { Event, Run, RunState } from '../api/shapes.ts'
import { brief, money, shortId, visible } from '../look/words.ts'
import { shownState } from '../look/states.ts'
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

/** What a run does, in one line. */
export function subject({ request, agent }: Pick<Run, 'request' | 'agent'>): string {
  if (request.kind === 'command') return visible(request.argv.join(' '))
  return request.kind === 'observed' ? `a turn of ${request.client}` : `a turn of ${agent}`
}

/** What an event says about a run that is listed, without asking for it. */
function heard(run: Run, { type, runId, at, data }: Event): Run {
  if (runId !== run.id) return run
  if (type === 'run.started') return { ...run, state: 'running', startedAt: run.startedAt ?? at }
  if (type === 'run.resumed' || type === 'run.requeued') return { ...run, state: 'queued' }
  if (type === 'run.parked') return { ...run, state: 'parked', parkedAt: at, parkedFor: String(data['waitsFor'] ?? '') }
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
    <PageFrame title="Runs" filled side={<Choice name="state" label="State" options={FILTERS} value={state} />}>
      <List
        pages={pages}
        label="Runs"
        id={(run) => run.id}
        href={(run) => `/runs/${run.id}`}
        row={(run) => <RunRow run={run} />}
        head={agent !== undefined && <span>of {agent}</span>}
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

const result = (run: Run) =>
  run.error ?? (run.state === 'parked' ? run.parkedFor : run.result === undefined ? '' : brief(run.result, 120))

export const RunRow = ({ run }: { readonly run: Run }) => (
  <div class="grid h-full grid-cols-[7.5rem_1fr_auto] items-center gap-x-4 px-4 md:grid-cols-[8rem_7rem_minmax(0,3fr)_minmax(0,2fr)_5.5rem_4rem_5.5rem] md:px-6">
    <State state={shownState(run)} />
    <span class="truncate font-medium max-md:hidden">{run.agent}</span>
    <span class="truncate" title={run.id}>
      <span class="md:hidden font-medium">{run.agent} · </span>
      {subject(run)} <span class="text-quiet font-mono text-xs">{shortId(run.id)}</span>
    </span>
    <span class="text-quiet truncate max-md:col-span-2 max-md:row-start-2 max-md:text-sm">{result(run)}</span>
    <span class="text-right max-md:hidden">
      <Lasted from={run.startedAt} to={run.endedAt} />
    </span>
    <span class="text-quiet text-right max-md:hidden">{money(run.usage.costUsd)}</span>
    <span class="text-quiet text-right text-sm max-md:col-start-3 max-md:row-start-1">
      <Ago at={run.createdAt} />
    </span>
  </div>
)
