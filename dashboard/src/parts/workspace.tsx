import { useState } from 'preact/hooks'

import type { Workspace } from '../api/shapes.ts'
import { shownWorkspace } from '../look/states.ts'
import { many, span, visible } from '../look/words.ts'
import { useKeys } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { choicesFor, decideOn } from '../state/workspaces.ts'
import type { Verb } from '../state/workspaces.ts'
import { Bytes } from './bytes.tsx'
import { useWasRead } from './desk.tsx'
import { Diff } from './diff.tsx'
import { Section, Trouble, Waiting } from './page.tsx'
import { Ago, Fact, Id, Key, State } from './small.tsx'

/** What a run did to files: what became of it, the check, the diff, and what a person can do about it. */
export function WorkspacePanel({ workspace }: { readonly workspace: Workspace | undefined }) {
  if (workspace === undefined) return null
  return (
    <Section title="Workspace" side={<State state={shownWorkspace(workspace)} note={modeNote(workspace)} />}>
      <div class="grid gap-4" data-workspace={workspace.state}>
        <p>{visible(sentence(workspace))}</p>
        <Decide workspace={workspace} />
        <Facts workspace={workspace} />
        <Check workspace={workspace} />
        <LeftOut workspace={workspace} />
        {hasDiff(workspace) ? <Changes workspace={workspace} /> : <Paths workspace={workspace} />}
      </div>
    </Section>
  )
}

const modeNote = ({ mode }: Workspace) => (mode === 'shadow' ? 'shadow' : undefined)

const VERDICTS: Readonly<Record<NonNullable<Workspace['check']>['verdict'], string>> = {
  passed: 'passed',
  failed: 'failed',
  timed_out: 'took longer than it may',
  not_validated: 'was not validated',
  none: 'none',
}

/** The check, if that is why; its words are below. */
function because({ reason, check, state }: Workspace): string {
  if (check !== undefined && check.verdict !== 'passed' && state !== 'ready')
    return `: the check ${VERDICTS[check.verdict]}`
  return reason === undefined ? '' : `: ${reason}`
}

/** What was begun in a working tree that is not there nobody could take back: then the reason says so. A wish takes the place of the error. */
const yourTree = ({ error, wish }: Workspace) =>
  error === undefined && wish === undefined ? ' Your tree is as it was.' : ''

const SENTENCES: Readonly<Partial<Record<Workspace['state'], (workspace: Workspace) => string>>> = {
  opened: () => 'Its own tree is being made. Yours is untouched.',
  active: () => 'It works in a tree of its own. Yours is untouched.',
  prepared: () => 'It is done, and is about to be checked. Your tree is untouched.',
  checked: () => 'It was checked. Your tree is untouched.',
  decided: ({ branch, error }) =>
    `It is landing on ${branch}.${error === undefined ? '' : ` That did not work yet: ${error}`}`,
  landed: (workspace) =>
    workspace.changedCount === 0
      ? 'It changed no file.'
      : `It landed on ${workspace.branch}, whole and checked${because(workspace)}.`,
  ready: (workspace) => `It is ready and did not land${because(workspace)}. Nothing of yours was touched.`,
  discarding: (workspace) => `It is being put aside${because(workspace)}.`,
  discarded: (workspace) => `It was discarded${because(workspace)}.${yourTree(workspace)}`,
  quarantined: (workspace) =>
    `What became of it cannot be proven${because(workspace)}. Nothing more is done without you.`,
  kept: ({ keptAs, branch }) => `It is kept as the branch ${keptAs ?? branch}.`,
  observing: () => 'It ran in your own tree. What a transaction would have done is being looked at.',
  would_land: ({ branch }) =>
    branch === ''
      ? 'It ran in your own tree. No branch was checked out, so a transaction would have been refused.'
      : `It ran in your own tree. A transaction would have landed this on ${branch}.`,
  would_discard: (workspace) =>
    `It ran in your own tree. A transaction would have kept this out of it${because(workspace)}.`,
}

const sentence = (workspace: Workspace) => SENTENCES[workspace.state]?.(workspace) ?? workspace.state

/** What landed or is kept is on a branch, whatever was swept. */
const hasDiff = ({ changedCount, sweptAt, state }: Workspace) =>
  changedCount > 0 && (sweptAt === undefined || state === 'landed' || state === 'kept')

/** One key a decision, and none before it can have been read. */
function Decide({ workspace }: { readonly workspace: Workspace }) {
  const { runId, state, wish } = workspace
  const [busy, setBusy] = useState(false)
  const choices = may('approve') ? choicesFor(workspace) : []
  const wasRead = useWasRead([runId, state, ...choices.map(({ verb }) => verb)].join(' '))
  const choose = async (verb: Verb) => {
    if (busy || !wasRead) return
    setBusy(true)
    await decideOn(workspace, verb)
    setBusy(false)
  }
  useKeys('Its files', Object.fromEntries(choices.map(({ verb, key, does }) => [key, [does, () => void choose(verb)]])))
  if (wish !== undefined && choices.length === 0)
    return (
      <p class="text-quiet">
        {visible(wish.by)} has asked to {wish.kind} it; the daemon of that machine does it.
      </p>
    )
  if (choices.length === 0) return null
  return (
    <div class="flex flex-wrap items-center gap-2" data-read={wasRead}>
      {choices.map(({ verb, word, key, look }) => (
        <button
          key={verb}
          type="button"
          class={`button ${look}`}
          data-verb={verb}
          disabled={busy || !wasRead}
          onClick={() => void choose(verb)}
        >
          {word} <Key>{key}</Key>
        </button>
      ))}
    </div>
  )
}

const Facts = ({ workspace }: { readonly workspace: Workspace }) => (
  <dl class="grid grid-cols-2 gap-3 sm:grid-cols-4">
    <Fact name="Changed">
      {many(workspace.changedCount, 'file')}{' '}
      <span class="text-quiet">
        +{workspace.lines.added} −{workspace.lines.removed}
      </span>
    </Fact>
    <Fact name="Branch">
      <span class="font-mono text-xs">{visible(workspace.branch)}</span>
    </Fact>
    {workspace.sha !== undefined && workspace.mode === 'transaction' && (
      <Fact name="Commit">
        <span title={workspace.sha}>
          <Id id={workspace.sha.slice(0, 10)} />
        </span>
      </Fact>
    )}
    {workspace.keptUntil !== undefined && (
      <Fact name="Can be brought back until">
        <Ago at={workspace.keptUntil} />
      </Fact>
    )}
    <Fact name="Repository">
      <span class="font-mono text-xs" title={visible(workspace.repository)}>
        {visible(workspace.repository)}
      </span>
    </Fact>
  </dl>
)

function Check({ workspace: { check } }: { readonly workspace: Workspace }) {
  if (check === undefined) return null
  const { verdict, exitCode, why, durationMs, output } = check
  const words = [
    VERDICTS[verdict],
    ...(exitCode === null || verdict === 'passed' ? [] : [`exit ${exitCode}`]),
    ...(durationMs === undefined ? [] : [span(durationMs)]),
    ...(why === undefined ? [] : [visible(why)]),
  ]
  return (
    <div class="grid gap-2" data-check={verdict}>
      <p>
        Check: <strong class={verdict === 'passed' ? 'text-good' : 'text-bad'}>{words[0]}</strong>
        <span class="text-quiet">{words.slice(1).map((word) => ` · ${word}`)}</span>
      </p>
      {output.trim() !== '' && (
        <details open={verdict !== 'passed'}>
          <summary class="text-quiet hover:text-ink mb-1 text-sm">What it printed last …</summary>
          <Bytes value={output} label="The check's output" />
        </details>
      )}
    </div>
  )
}

function LeftOut({ workspace: { leftOut, leftOutCount, conflicts = [] } }: { readonly workspace: Workspace }) {
  if (leftOutCount === 0 && conflicts.length === 0) return null
  return (
    <div class="grid gap-1 text-sm">
      {leftOut.map(({ path, why }) => (
        <p key={path}>
          <span class="text-warn font-medium">Left out:</span> <span class="font-mono">{visible(path)}</span>{' '}
          <span class="text-quiet">({visible(why)})</span>
        </p>
      ))}
      {leftOutCount > leftOut.length && (
        <p class="text-quiet">and {many(leftOutCount - leftOut.length, 'more path')} left out</p>
      )}
      {conflicts.map((path) => (
        <p key={path}>
          <span class="text-bad font-medium">In conflict with the branch:</span>{' '}
          <span class="font-mono">{visible(path)}</span>
        </p>
      ))}
    </div>
  )
}

/** The content is not ours any more, or never was: a shadow's is in the person's own tree. */
function Paths({ workspace: { changed, changedCount } }: { readonly workspace: Workspace }) {
  if (changedCount === 0) return null
  return (
    <ul class="panel overflow-hidden" data-paths={changedCount}>
      {changed.slice(0, SHOWN_PATHS).map((path) => (
        <li key={path} class="row-line px-3 py-1 font-mono text-sm last:border-0">
          {visible(path)}
        </li>
      ))}
      {changedCount > SHOWN_PATHS && (
        <li class="text-quiet px-3 py-1 text-sm">and {many(changedCount - SHOWN_PATHS, 'other')}</li>
      )}
    </ul>
  )
}

const SHOWN_PATHS = 50

function Changes({ workspace: { runId } }: { readonly workspace: Workspace }) {
  const { data, problem } = useResource('workspaces.diff', { run: runId }, ['workspace.'])
  const found = data.value
  if (found === undefined)
    return problem.value === undefined ? <Waiting rows={4} /> : <Trouble problem={problem.value} />
  return <Diff text={found.diff} truncated={found.truncated} />
}
