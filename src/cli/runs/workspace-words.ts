import { visible } from '../words/output.ts'
import { facts } from '../decisions/show-matter.ts'
import type { WorkspaceView } from '../words/views.ts'

/** How a workspace is told of: what happened, why, and the commands that go on from there. */

const SHOWN_PATHS = 20
const SHOWN_LINES = 20

export const shortSha = (sha: string) => sha.slice(0, 10)

/** `3 files (+12 −4)`. */
export function size({ changedCount, lines }: Pick<WorkspaceView, 'changedCount' | 'lines'>): string {
  if (changedCount === 0) return 'no file'
  return `${changedCount} file${changedCount === 1 ? '' : 's'} (+${lines.added} −${lines.removed})`
}

export function describeWorkspace(workspace: WorkspaceView): string {
  const { check, changed, changedCount, leftOut, leftOutCount, conflicts = [] } = workspace
  const lines = facts([
    ['run', workspace.runId],
    ['state', describeState(workspace)],
    ['because', workspace.reason ?? ''],
    ['in the way', workspace.error ?? ''],
    ['agent', workspace.agent],
    ['repository', workspace.repository],
    ['branch', workspace.branch],
    ['base', workspace.base],
    ['commit', workspace.sha ?? ''],
    ['ref', workspace.mode === 'shadow' || workspace.sweptAt !== undefined ? '' : workspace.ref],
    ['kept as', workspace.keptAs ?? ''],
    ['kept until', workspace.keptUntil ?? ''],
    ['asked for', workspace.wish === undefined ? '' : `${workspace.wish.kind}, by ${workspace.wish.by}`],
    ['opened', workspace.openedAt],
    ['decided', workspace.decidedAt ?? ''],
    ['settled', workspace.settledAt ?? ''],
    ['check', check === undefined ? '' : describeVerdict(check)],
    ['changed', size(workspace)],
  ])
  return [
    lines,
    listed('changed:', changed, changedCount),
    listed(
      'left out:',
      leftOut.map(({ path, why }) => `${path} (${why})`),
      leftOutCount,
    ),
    listed('in conflict with the branch:', conflicts, conflicts.length),
    check === undefined || check.output.trim() === '' ? '' : `the check printed:\n${tailOf(check.output)}`,
    nextSteps(workspace),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function listed(title: string, items: readonly string[], count: number): string {
  if (count === 0) return ''
  const shown = items.slice(0, SHOWN_PATHS).map((item) => `  ${visible(item).replaceAll('\n', '\\n')}`)
  const more = count - shown.length
  return [title, ...shown, ...(more > 0 ? [`  … and ${more} more`] : [])].join('\n')
}

export function tailOf(output: string, margin = '  '): string {
  const lines = visible(output).trimEnd().split('\n')
  const shown = lines.slice(-SHOWN_LINES).map((line) => `${margin}${line}`)
  return [...(lines.length > SHOWN_LINES ? [`${margin}…`] : []), ...shown].join('\n')
}

const STATES: Readonly<Partial<Record<WorkspaceView['state'], string>>> = {
  opened: 'being opened',
  active: 'at work in its own tree; yours is untouched',
  prepared: 'done, about to be checked; your tree is untouched',
  checked: 'checked; your tree is untouched',
  decided: 'landing',
  ready: 'ready, waits for a person; your tree is untouched',
  discarding: 'being discarded',
  discarded: 'discarded; your tree is as it was',
  quarantined: 'in quarantine: what happened cannot be proven, and nothing more is done without a person',
  observing: 'a shadow, being looked at',
  would_land: 'a shadow: a transaction would have landed it',
  would_discard: 'a shadow: a transaction would have kept it out of your tree',
}

/** Of what was discarded: otherwise it may be that nobody could look at your tree, and the reason says so. A wish takes the place of the error. */
export const isAsItWas = ({ error, wish }: Pick<WorkspaceView, 'error' | 'wish'>) =>
  error === undefined && wish === undefined

export function describeState(workspace: Pick<WorkspaceView, 'state' | 'keptAs' | 'error' | 'wish'>): string {
  const { state, keptAs } = workspace
  if (state === 'kept' && keptAs !== undefined) return `kept as the branch ${keptAs}`
  if (state === 'discarded' && !isAsItWas(workspace)) return state
  return STATES[state] ?? state
}

export function describeVerdict({ verdict, exitCode, why, durationMs }: NonNullable<WorkspaceView['check']>): string {
  const words = {
    passed: 'passed',
    failed: `failed${exitCode === null ? '' : ` (exit ${exitCode})`}`,
    timed_out: 'took longer than it may',
    not_validated: 'not validated',
    none: 'none',
  }[verdict]
  const took = durationMs === undefined ? '' : ` in ${lasting(durationMs)}`
  return `${words}${took}${why === undefined ? '' : `: ${why}`}`
}

export const lasting = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`)

/** In one line, for whoever looks at the run. */
export const describeFiles = (workspace: WorkspaceView): string =>
  `${size(workspace)}${workspace.branch === '' ? '' : ` on ${workspace.branch}`}, ${describeState(workspace)}${workspace.reason === undefined ? '' : ` (${workspace.reason})`}; \`holdfast workspace show ${workspace.runId}\``

/** The commands that go on from here, one a line with what they do. */
export function nextSteps({ runId, state, mode, keptUntil, sweptAt, wish, error }: WorkspaceView): string {
  if (mode === 'shadow') return ''
  const isStuck = state === 'decided' && error !== undefined
  if (wish !== undefined && !isStuck) return `${wish.by} has asked to ${wish.kind} it; a daemon on that machine does it`
  const back = `bring it back as a branch${keptUntil === undefined ? '' : `, until ${keptUntil}`}`
  const steps: Readonly<Partial<Record<WorkspaceView['state'], readonly (readonly [string, string])[]>>> = {
    decided: isStuck ? [['discard', 'give it up: what is in place is taken back']] : [],
    ready: [
      ['land', 'put it on its branch'],
      ['diff', 'see it'],
      ['keep', 'keep it as a branch of its own'],
      ['discard', 'throw it away'],
    ],
    quarantined: [
      ['diff', 'see it'],
      ['retry', 'try once more'],
      ['keep', 'keep it as a branch of its own'],
      ['discard', 'throw it away'],
    ],
    discarded: [
      ['diff', 'see what it had done'],
      ['keep', back],
    ],
  }
  if (sweptAt !== undefined && state === 'discarded') return `its content was removed at ${sweptAt}`
  return commands(runId, steps[state] ?? [])
}

const commands = (runId: string, steps: readonly (readonly [string, string])[]) =>
  steps.map(([verb, does]) => `${`  holdfast workspace ${verb} ${runId}`.padEnd(60)}  ${does}`).join('\n')
