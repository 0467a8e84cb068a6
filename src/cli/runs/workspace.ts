import { Option } from 'commander'
import type { Command } from 'commander'

import { LIMITS } from '../../base/limits.ts'
import { WORKSPACE_MODES, WORKSPACE_STATES } from '../../workspace/workspace.ts'
import type { WorkspaceMode, WorkspaceState } from '../../workspace/workspace.ts'
import { collect } from '../around/collect.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { anyCountOption } from '../words/count-option.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ago, table } from '../words/output.ts'
import { refuseInsideRun } from '../around/person.ts'
import type { WorkspaceView } from '../words/views.ts'
import { showReport } from './workspace-report.ts'
import type { ReportFlags } from './workspace-report.ts'
import { describeState, describeWorkspace, nextSteps, shortSha, size } from './workspace-words.ts'

type Work = (operator: Operator, run: string) => Promise<number>

export function addWorkspace(own: Command, setExit: SetExit): void {
  own
    .command('list', { isDefault: true })
    .description('the newest first: what runs did to files, and what became of it')
    .addOption(new Option('--state <state...>', 'only those in these states').choices(WORKSPACE_STATES))
    .addOption(new Option('--mode <mode>', 'only transactions, or only shadows').choices(WORKSPACE_MODES))
    .option('--limit <count>', 'how many', anyCountOption, LIMITS.page)
    .action(async (flags: ListFlags, command: Command) => {
      setExit(await withApi(command, (operator) => list(operator, flags)))
    })
  const one = (name: string, description: string, work: Work) =>
    own
      .command(name)
      .description(description)
      .argument('<run>')
      .action(async (run: string, _: unknown, command: Command) =>
        setExit(await withApi(command, (operator) => work(operator, run))),
      )
  one('show', 'one: what changed, the check, what became of it, and what one can do about it', show)
  one('diff', 'what the work changes; also that of a discarded one, for as long as it is kept', diff)
  one('land', 'put work that is ready on its branch', decide('workspaces.land'))
  one(
    'discard',
    'throw away work that is ready, in quarantine or stuck in its landing; `keep` brings it back for a while',
    discard,
  )
  one('retry', 'try once more what ended in quarantine', decide('workspaces.retry'))
  own
    .command('keep')
    .description('keep the work under a branch of its own: what is ready, discarded or in quarantine')
    .argument('<run>')
    .option('--branch <name>', 'under this name (default: holdfast/RUN)')
    .action(async (run: string, flags: { readonly branch?: string }, command: Command) =>
      setExit(await withApi(command, (operator) => keep(operator, run, flags.branch))),
    )
  own
    .command('report')
    .description('what transactions would have landed and discarded, from what shadows saw')
    .option('--since <time>', 'only runs that began since then, as 7d or 2026-01-31')
    .action(async (flags: ReportFlags, command: Command) => {
      setExit(await withApi(command, (operator) => showReport(operator, flags)))
    })
}

interface ListFlags {
  readonly state?: readonly WorkspaceState[]
  readonly mode?: WorkspaceMode
  readonly limit: number
}

async function list({ api, output, clock }: Operator, { state, mode, limit }: ListFlags): Promise<number> {
  const ask = { ...(state === undefined ? {} : { state: [...state] }), ...(mode === undefined ? {} : { mode }) }
  const found = await collect(api, 'workspaces.list', ask, limit)
  const now = clock.now()
  output.result(found, () =>
    table(
      ['RUN', 'STATE', 'AGENT', 'BRANCH', 'CHANGED', 'OPENED'],
      found.map((each) => [
        each.runId,
        each.state,
        each.agent,
        each.branch,
        size(each),
        ago(Date.parse(each.openedAt), now),
      ]),
      'no workspaces: `holdfast run --workspace DIR --check CMD -- …` opens one',
    ),
  )
  return EXIT.done
}

async function show({ api, output }: Operator, run: string): Promise<number> {
  const workspace = await api.call('workspaces.show', { run })
  output.result(workspace, () => describeWorkspace(workspace))
  return EXIT.done
}

async function diff({ api, output }: Operator, run: string): Promise<number> {
  const found = await api.call('workspaces.diff', { run })
  output.result(found, () => found.diff)
  const command = `git diff ${shortSha(found.from)} ${shortSha(found.to)}`
  if (found.truncated) output.note(`that is the beginning; \`${command}\` in the repository shows all of it`)
  else if (found.diff === '') output.note('it changes nothing')
  return EXIT.done
}

/** What a person decides. Whoever asks for one thing and gets another hears why, and exits as refused. */
const decide =
  (call: 'workspaces.land' | 'workspaces.retry'): Work =>
  async (operator, run) => {
    refuseInsideRun(operator)
    const workspace = await operator.api.call(call, { run })
    return report(operator, workspace, workspace.state !== 'ready' && workspace.state !== 'quarantined')
  }

const discard: Work = async (operator, run) => {
  refuseInsideRun(operator)
  const workspace = await operator.api.call('workspaces.discard', { run })
  return report(operator, workspace, workspace.state !== 'quarantined')
}

async function keep(operator: Operator, run: string, branch: string | undefined): Promise<number> {
  refuseInsideRun(operator)
  const asked = { run, ...(branch === undefined ? {} : { branch }) }
  const workspace = await operator.api.call('workspaces.keep', asked)
  return report(operator, workspace, true)
}

function report({ output }: Operator, workspace: WorkspaceView, isDone: boolean): number {
  const { runId, state, reason, error, wish } = workspace
  output.result(workspace, () => `${runId} ${wish === undefined ? describeState(workspace) : state}`)
  if (error !== undefined && (wish !== undefined || state === 'discarding'))
    output.note(`not done yet: ${error}; it is tried again`)
  else if (reason !== undefined && (state === 'landed' || (state === 'discarded' && error !== undefined)))
    output.note(reason)
  else if (!isDone && wish === undefined) output.note(`it did not come to that: ${reason ?? 'no reason was given'}`)
  if (wish !== undefined || !isDone) output.note(nextSteps(workspace).trimStart())
  return isDone || wish !== undefined ? EXIT.done : EXIT.refused
}
