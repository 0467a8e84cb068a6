import { Option } from 'commander'
import type { Command } from 'commander'

import { formatDuration } from '../../base/duration.ts'
import { LIMITS } from '../../base/limits.ts'
import { RUN_STATES, isTerminal } from '../../runs/run.ts'
import type { RunState } from '../../runs/run.ts'
import { collect } from '../around/collect.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { describeTurns } from './conversation.ts'
import { anyCountOption, sequenceOption } from '../words/count-option.ts'
import { showEvents } from './events.ts'
import type { EventFlags } from './events.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ago, table, visible } from '../words/output.ts'
import { describeAwaited } from '../decisions/show-matter.ts'
import { showStatement } from './statement.ts'
import { untilStopped } from '../around/stopped.ts'
import type { RunView, WholeRunView } from '../words/views.ts'
import { describeFiles } from './workspace-words.ts'

export function addRuns(runs: Command, setExit: SetExit): void {
  runs
    .command('list')
    .description('the newest runs first')
    .addOption(new Option('--state <state...>', 'only runs in these states').choices(RUN_STATES))
    .option('--thread <thread>', 'only runs of this thread')
    .option('--limit <count>', 'how many', anyCountOption, LIMITS.page)
    .action(async (flags: ListFlags, command: Command) => {
      setExit(await withApi(command, (operator) => list(operator, flags)))
    })
  runs
    .command('show')
    .description('one run: what it was asked, how it went, what it printed')
    .argument('<run>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => show(operator, id))),
    )
  runs
    .command('cancel')
    .description('stop a run for good and wait until its processes are dead')
    .argument('<run>')
    .option('--reason <text>', 'why, for the record')
    .option('--no-wait', 'return as soon as the request is stored')
    .action(async (id: string, flags: CancelFlags, command: Command) => {
      setExit(await withApi(command, (operator) => cancel(operator, id, flags)))
    })
  runs
    .command('disown')
    .description('say that the worker of a run, on a host that cannot be reached, is dead: the run ends as lost')
    .argument('<run>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => disown(operator, id))),
    )
  runs
    .command('statement')
    .description('every effect that a run had on the world: what, who allowed it, when, and what is in doubt')
    .argument('<run>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => showStatement(operator, id))),
    )
  runs
    .command('events')
    .description('what happened to a run (or, without one, to everything), oldest first')
    .argument('[run]')
    .option('--after <seq>', 'only what came after this sequence number', sequenceOption, 0)
    .option('--follow', 'go on as it happens; with --json one value a line')
    .action(async (id: string | undefined, flags: EventFlags, command: Command) => {
      setExit(await withApi(command, (operator) => showEvents(operator, id, flags)))
    })
}

interface ListFlags {
  readonly state?: readonly RunState[]
  readonly thread?: string
  readonly limit: number
}

async function list({ api, output, clock }: Operator, { state, thread, limit }: ListFlags): Promise<number> {
  const ask = { ...(state === undefined ? {} : { state: [...state] }), ...(thread === undefined ? {} : { thread }) }
  const found = await collect(api, 'runs.list', ask, limit)
  const now = clock.now()
  output.result(found, () =>
    table(
      ['RUN', 'STATE', 'AGENT', 'CREATED', 'COMMAND'],
      found.map((run) => [run.id, stateOf(run), run.agent, ago(Date.parse(run.createdAt), now), commandLine(run)]),
      'no runs',
    ),
  )
  return EXIT.done
}

/** What was asked for, in one line. */
export const commandLine = (run: RunView) => visible(asked(run)).replaceAll('\n', ' ').slice(0, 60)

const asked = ({ request, agent }: RunView) => {
  if (request.kind === 'command') return request.argv.join(' ')
  return request.kind === 'agent' && request.called === true ? `a call of ${agent}` : `a turn of ${agent}`
}

const stateOf = (run: RunView) => {
  if (!isTerminal(run.state) && run.cancelRequestedAt !== undefined) return `${run.state} (cancelling)`
  return run.code === undefined ? run.state : `${run.state} (${run.code})`
}

async function show(operator: Operator, given: string): Promise<number> {
  const { api, output } = operator
  const run = await api.call('runs.show', { run: given })
  output.result(run, () => [describeRun(run), ...describeTurns(run.steps ?? [], run.actions ?? [])].join('\n\n'))
  if (run.silent !== undefined) output.note(describeSilence(run.id, run.silent))
  if (run.waitsFor === undefined) return EXIT.done
  output.note(await describeAwaited(operator, run.waitsFor))
  return EXIT.waiting
}

const describeSilence = (id: string, { host, since }: NonNullable<WholeRunView['silent']>) =>
  `its worker on ${host} has been silent since ${since}, and its command may be running there: start Holdfast there again, or, if that machine is gone for good, \`holdfast runs disown ${id}\` ends the run as lost`

function describeRun(run: WholeRunView): string {
  const { request, cancel: cancelled, attempts, lateResults = [] } = run
  const { stdout, stderr } = (run.result ?? {}) as { stdout?: Printed; stderr?: Printed }
  const timeoutMs = request.kind === 'observed' ? undefined : request.timeoutMs
  const lines = [
    ['run', run.id],
    ['state', stateOf(run)],
    ['error', run.error ?? ''],
    ['thread', run.threadId],
    ['agent', run.agent],
    ['asked for', asked(run)],
    ['folder', request.kind === 'command' ? request.cwd : ''],
    ['files', run.workspace === undefined ? '' : describeFiles(run.workspace)],
    ['timeout', timeoutMs === undefined ? '' : formatDuration(timeoutMs)],
    ['created', run.createdAt],
    ['started', run.startedAt ?? ''],
    ['ended', run.endedAt ?? ''],
    [
      'cancelled by',
      cancelled === undefined ? '' : `${cancelled.by}${cancelled.reason === undefined ? '' : `: ${cancelled.reason}`}`,
    ],
    ['tokens', describeUsage(run)],
    ['attempts', attempts.map(({ number, outcome }) => `${number} ${outcome ?? 'under way'}`).join(', ')],
    ['late results', describeLate(lateResults)],
  ].filter(([, value]) => value !== '')
  const facts = lines.map(([name, value]) => `${`${name}:`.padEnd(14)}${visible(value ?? '')}`).join('\n')
  return [facts, printed('standard output', stdout), printed('standard error', stderr)]
    .filter((part) => part !== '')
    .join('\n\n')
}

/** Nothing for what has no model, or does not say what it took. */
function describeUsage({ usage: { inputTokens, outputTokens, costUsd } }: WholeRunView): string {
  if (inputTokens + outputTokens === 0 && costUsd === 0) return ''
  return `${inputTokens} in, ${outputTokens} out${costUsd === 0 ? '' : `, $${costUsd}`}`
}

/** What a worker that had lost the run was answered is on no bill but here. */
function describeLate(late: NonNullable<WholeRunView['lateResults']>): string {
  if (late.length === 0) return ''
  const unbilled = late.flatMap(({ state, usage }) =>
    state === 'superseded' ? [usage as { costMicrousd: number }] : [],
  )
  const microusd = unbilled.reduce((sum, { costMicrousd }) => sum + costMicrousd, 0)
  const besides = microusd === 0 ? '' : `; at least $${microusd / 1_000_000} besides the cost of the run`
  return `${late.length}, kept beside the run and not applied (--json shows them)${besides}`
}

interface Printed {
  readonly head: string
  readonly tail: string
  readonly totalBytes: number
  readonly truncated: boolean
}

function printed(name: string, text: Printed | undefined): string {
  if (text === undefined || text.totalBytes === 0) return ''
  const body = text.truncated ? `${text.head}\n… of ${text.totalBytes} bytes …\n${text.tail}` : text.head + text.tail
  return `${name}:\n${visible(body).trimEnd()}`
}

interface CancelFlags {
  readonly reason?: string
  readonly wait: boolean
}

async function cancel(operator: Operator, given: string, { reason, wait }: CancelFlags): Promise<number> {
  const { api, output } = operator
  const told = await api.call('runs.cancel', { run: given, ...(reason === undefined ? {} : { reason }) })
  const { id } = told
  const stopped = wait ? await untilStopped(operator, id) : isTerminal(told.state)
  const run = wait ? onlyRun(await api.call('runs.show', { run: id })) : told
  output.result(run, () => (stopped ? `${id} ${run.state}` : `${id} will be cancelled; its worker is stopping it`))
  if (stopped || !wait) return EXIT.done
  output.note('the request is stored and final, but its worker has not stopped it yet; `holdfast doctor` says why')
  return EXIT.failed
}

/** Without what belongs to it. */
export function onlyRun(whole: WholeRunView): RunView {
  const {
    attempts: _a,
    steps: _s,
    actions: _c,
    waitsFor: _w,
    silent: _n,
    workspace: _k,
    lateResults: _l,
    ...run
  } = whole
  return run
}

async function disown({ api, output }: Operator, given: string): Promise<number> {
  const run = await api.call('runs.disown', { run: given })
  output.result(run, () => `${run.id} ${run.state}`)
  return EXIT.done
}
