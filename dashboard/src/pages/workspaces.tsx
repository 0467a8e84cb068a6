import type { Workspace } from '../api/shapes.ts'
import { shownWorkspace } from '../look/states.ts'
import { many, shortId, visible } from '../look/words.ts'
import { Choice, List } from '../parts/list.tsx'
import { PageFrame } from '../parts/page.tsx'
import { Ago, Empty, State } from '../parts/small.tsx'
import { usePaged } from '../state/paged.ts'
import { useResource } from '../state/resource.ts'
import { search } from '../state/router.ts'

const FILTERS: readonly (readonly [string, string])[] = [
  ['', 'All'],
  ['ready,quarantined', 'Needs you'],
  ['landed', 'Landed'],
  ['discarding,discarded', 'Discarded'],
  ['kept', 'Kept'],
  ['would_land,would_discard,observing', 'Shadows'],
]

/** What runs did to files, and what became of it. One is shown on the page of its run. */
export function Workspaces() {
  const state = search.value.get('state') ?? ''
  const pages = usePaged('workspaces.list', state === '' ? {} : { state: state.split(',') as Workspace['state'][] }, {
    id: ({ runId }) => runId,
    wakes: ['workspace.'],
  })
  return (
    <PageFrame title="Workspaces" filled side={<Choice name="state" label="State" options={FILTERS} value={state} />}>
      {state.startsWith('would') && <Report />}
      <List
        pages={pages}
        label="Workspaces"
        id={(each) => each.runId}
        href={(each) => `/runs/${each.runId}`}
        row={(each) => <Row workspace={each} />}
        head={HEAD}
        empty={
          <Empty title={state === '' ? 'No workspaces yet' : 'No such workspaces'}>
            A run with a workspace changes files whole and checked, or not at all:{' '}
            <code class="font-mono">holdfast run --workspace . --check "npm test" -- …</code>
          </Empty>
        }
      />
    </PageFrame>
  )
}

/** What shadows have seen so far. */
function Report() {
  const { data } = useResource('workspaces.report', {}, ['workspace.'])
  const report = data.value
  if (report === undefined || report.runs === 0) return null
  const { wouldLand, wouldDiscard } = report
  return (
    <div class="border-line bg-sunken grid gap-1 border-b px-4 py-3 text-sm md:px-6" data-report={report.runs}>
      <p>
        Of <strong>{many(report.runs, 'run')}</strong> in shadow mode, transactions would have landed{' '}
        <strong class="text-good">{wouldLand.runs}</strong> ({many(wouldLand.files, 'file')}) and kept{' '}
        <strong class="text-bad">{wouldDiscard.runs}</strong> ({many(wouldDiscard.files, 'file')}, +{wouldDiscard.added}{' '}
        −{wouldDiscard.removed}) out of the tree.
      </p>
      <p class="text-quiet first-letter:uppercase">{visible(report.advice)}</p>
    </div>
  )
}

const COLUMNS =
  'grid h-full items-center gap-x-4 px-4 md:px-6 grid-cols-[1fr_auto] md:grid-cols-[9rem_8rem_minmax(0,1fr)_9rem_8rem_7rem_5.5rem]'

const HEAD = (
  <div class={COLUMNS}>
    <span>State</span>
    <span>Agent</span>
    <span>Why</span>
    <span>Branch</span>
    <span class="text-right">Changed</span>
    <span>Run</span>
  </div>
)

const Row = ({ workspace }: { readonly workspace: Workspace }) => (
  <div class={`${COLUMNS} max-md:content-center`}>
    <span class="flex min-w-0 gap-3">
      <State state={shownWorkspace(workspace)} />
      <span class="truncate font-medium md:hidden">{visible(workspace.agent)}</span>
    </span>
    <span class="truncate font-medium max-md:hidden">{visible(workspace.agent)}</span>
    <span class="text-quiet min-w-0 truncate max-md:col-span-2 max-md:row-start-2">{visible(why(workspace))}</span>
    <span class="truncate font-mono text-xs max-md:hidden">{visible(workspace.branch)}</span>
    <span class="text-right text-sm max-md:hidden">
      {workspace.changedCount === 0
        ? '–'
        : `${workspace.changedCount} · +${workspace.lines.added} −${workspace.lines.removed}`}
    </span>
    <span class="text-quiet truncate font-mono text-xs max-md:hidden" title={workspace.runId}>
      {shortId(workspace.runId)}
    </span>
    <span class="text-quiet text-right text-sm max-md:col-start-2 max-md:row-start-1">
      <Ago at={workspace.openedAt} />
    </span>
  </div>
)

/** Its reason, or the first of what it changed. */
function why({ reason, changed, changedCount }: Workspace): string {
  if (reason !== undefined) return reason
  const [first] = changed
  return first === undefined ? '' : changedCount === 1 ? first : `${first} and ${many(changedCount - 1, 'other')}`
}
