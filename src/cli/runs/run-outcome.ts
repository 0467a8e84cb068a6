import type { Output } from '../words/output.ts'
import { describeVerdict, isAsItWas, shortSha, size, tailOf } from './workspace-words.ts'
import type { WorkspaceView } from '../words/views.ts'

/** What became of a run's files, for whoever started it: what happened, why, and the commands that go on from there. */
export function noteFiles({ note }: Output, workspace: WorkspaceView): void {
  const text = TOLD[workspace.state]?.(workspace)
  if (text !== undefined) note(text)
}

type Tell = (workspace: WorkspaceView) => string

const TOLD: Readonly<Partial<Record<WorkspaceView['state'], Tell>>> = {
  landed: (workspace) =>
    workspace.changedCount === 0
      ? 'it changed no file: there is nothing to land'
      : `landed on ${workspace.branch} as ${shortSha(workspace.sha ?? '')}: ${size(workspace)}${checkWords(workspace)}`,
  decided: (workspace) =>
    `its work (${size(workspace)}) is about to land on ${workspace.branch}${hindrance(workspace)}; \`holdfast workspace show ${workspace.runId}\` says how it went`,
  ready: (workspace) =>
    lines(
      `its work (${size(workspace)}) is ready and did not land on ${workspace.branch}: ${workspace.reason ?? 'it has to be looked at'}`,
      `nothing of yours was touched; it is commit ${shortSha(workspace.sha ?? '')}. To land it:`,
      `  holdfast workspace land ${workspace.runId}`,
    ),
  discarded: (workspace) => lines(...unlanded(workspace), ...recovery(workspace)),
  discarding: (workspace) =>
    lines(...unlanded(workspace), `its work is still being put aside${hindrance(workspace)}`, ...recovery(workspace)),
  quarantined: (workspace) =>
    lines(
      `what became of its files cannot be proven, so nothing more is done without you: ${workspace.reason ?? ''}`,
      `  holdfast workspace show ${workspace.runId}    then retry, keep or discard`,
    ),
  would_land: (workspace) =>
    workspace.changedCount === 0
      ? 'shadow: it changed no file'
      : `shadow: ${wouldHaveLanded(workspace)}${checkWords(workspace)}; \`holdfast workspace report\` counts`,
  would_discard: (workspace) =>
    lines(
      `shadow: a transaction would have kept ${size(workspace)} out of your tree: ${workspace.reason ?? 'its run did not succeed'}`,
      ...checkSaid(workspace),
      '  holdfast workspace report    counts, and says how to switch transactions on',
    ),
}

const wouldHaveLanded = (workspace: WorkspaceView) =>
  workspace.branch === ''
    ? `no branch is checked out, so a transaction would have been refused; on a branch it would have landed ${size(workspace)}`
    : `a transaction would have landed ${size(workspace)} on ${workspace.branch}`

const lines = (...all: readonly string[]) => all.join('\n')

const hindrance = ({ error }: WorkspaceView) => (error === undefined ? '' : `, which did not work yet: ${error}`)

const checkWords = ({ check }: WorkspaceView) => (check === undefined ? '' : `, check ${describeVerdict(check)}`)

/** The check's own words, if it is the reason. */
function unlanded(workspace: WorkspaceView): string[] {
  const { check, reason = 'its run did not succeed' } = workspace
  const said = isAsItWas(workspace) ? 'nothing landed, and your tree is as it was' : 'nothing landed'
  if (check === undefined || check.verdict === 'passed') return [`${said}: ${reason}`]
  return [said, ...checkPrinted(check)]
}

const checkPrinted = ({ output }: NonNullable<WorkspaceView['check']>): string[] =>
  output.trim() === '' ? [] : ['the check printed last:', tailOf(output, '  | ')]

function checkSaid({ check }: WorkspaceView): string[] {
  return check === undefined || check.verdict === 'passed' ? [] : checkPrinted(check)
}

function recovery({ runId, changedCount, keptUntil, sha }: WorkspaceView): string[] {
  if (sha === undefined || changedCount === 0) return []
  const files = `its work (${changedCount} file${changedCount === 1 ? '' : 's'})`
  return [
    `${files} can be looked at and brought back${keptUntil === undefined ? '' : ` until ${keptUntil}`}:`,
    `  holdfast workspace diff ${runId}`,
    `  holdfast workspace keep ${runId}`,
  ]
}
