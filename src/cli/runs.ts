import { Option } from 'commander'
import type { Command } from 'commander'

import { awaitedBy, viewAwaited } from '../actions/desk.ts'
import { formatDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { newAttemptId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { judgeProcess } from '../processes/identity.ts'
import type { Attempt } from '../runs/attempt.ts'
import { cancelRun } from '../runs/cancel.ts'
import { familyOf } from '../runs/children.ts'
import { disownRun, heldAttempts } from '../runs/recover.ts'
import { RUN_STATES, isTerminal, listRuns } from '../runs/run.ts'
import type { Run, RunState } from '../runs/run.ts'
import { readWholeRun, viewRun, viewWholeRun } from '../runs/view.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { describeTurns } from './conversation.ts'
import { showEvents } from './events.ts'
import type { EventFlags } from './events.ts'
import { EXIT } from './exit-code.ts'
import { theRun, theThread } from '../control/find.ts'
import type { SetExit } from './main.ts'
import { ago, progress, table, visible } from './output.ts'
import { describeAwaited } from './show-matter.ts'
import { showStatement } from './statement.ts'
import { untilEnded } from './wait.ts'

export function addRuns(program: Command, setExit: SetExit): void {
  const runs = program.command('runs').description('what was and is being executed')
  runs
    .command('list')
    .description('the newest runs first')
    .addOption(new Option('--state <state...>', 'only runs in these states').choices(RUN_STATES))
    .option('--thread <thread>', 'only runs of this thread')
    .option('--limit <count>', 'how many', Number, LIMITS.page)
    .action(async (flags: ListFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => list(context, flags), 'welcome'))
    })
  runs
    .command('show')
    .description('one run: what it was asked, how it went, what it printed')
    .argument('<run>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, id), 'welcome')),
    )
  runs
    .command('cancel')
    .description('stop a run for good and wait until its processes are dead')
    .argument('<run>')
    .option('--reason <text>', 'why, for the record')
    .option('--no-wait', 'return as soon as the request is stored')
    .action(async (id: string, flags: CancelFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => cancel(context, id, flags), 'welcome'))
    })
  runs
    .command('disown')
    .description('say that the worker of a run, on a host that cannot be reached, is dead: the run ends as lost')
    .argument('<run>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => disown(context, id), 'welcome')),
    )
  runs
    .command('statement')
    .description('every effect that a run had on the world: what, who allowed it, when, and what is in doubt')
    .argument('<run>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => showStatement(context, id), 'welcome')),
    )
  runs
    .command('events')
    .description('what happened to a run (or, without one, to everything), oldest first')
    .argument('[run]')
    .option('--after <seq>', 'only what came after this sequence number', Number, 0)
    .option('--follow', 'go on as it happens; with --json one value a line')
    .action(async (id: string | undefined, flags: EventFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => showEvents(context, id, flags), 'welcome'))
    })
}

interface ListFlags {
  readonly state?: readonly RunState[]
  readonly thread?: string
  readonly limit: number
}

async function list({ runtime, output }: Context, flags: ListFlags): Promise<number> {
  const threadId = flags.thread === undefined ? undefined : (await theThread(runtime.store, flags.thread)).id
  if (!Number.isSafeInteger(flags.limit) || flags.limit < 1) {
    throw new HoldfastError('usage/limit', '--limit wants a whole number of 1 or more', { remedy: 'as in --limit 20' })
  }
  const found = await runtime.store.read(listRuns, {
    limit: flags.limit,
    ...(flags.state === undefined ? {} : { states: flags.state }),
    ...(threadId === undefined ? {} : { threadId }),
  })
  const now = runtime.clock.now()
  output.result(
    found.map((run) => viewRun(run)),
    () =>
      found.length === 0
        ? 'no runs'
        : table(
            ['RUN', 'STATE', 'AGENT', 'CREATED', 'COMMAND'],
            found.map((run) => [run.id, stateOf(run), run.agent, ago(run.createdAt, now), commandLine(run)]),
          ),
  )
  return EXIT.done
}

/** What was asked for, in one line. */
export const commandLine = (run: Run) => visible(asked(run)).replaceAll('\n', ' ').slice(0, 60)

const asked = ({ request, agent }: Run) => (request.kind === 'command' ? request.argv.join(' ') : `a turn of ${agent}`)

const stateOf = (run: Run) => {
  if (!isTerminal(run.state) && run.cancelRequestedAt !== null) return `${run.state} (cancelling)`
  return run.code === null ? run.state : `${run.state} (${run.code})`
}

async function show({ runtime, output }: Context, given: string): Promise<number> {
  const { id } = await theRun(runtime.store, given)
  const whole = await runtime.store.read(readWholeRun, id)
  if (whole === undefined) throw new HoldfastError('not-found/run', `there is no run "${given}"`)
  const awaited = await runtime.store.read(awaitedBy, id)
  const { run, late, attempts, entries, actions } = whole
  const view = viewWholeRun(whole)
  output.result(awaited === undefined ? view : { ...view, waitsFor: viewAwaited(awaited) }, () =>
    [describeRun(run, attempts, late.length), ...describeTurns(entries, actions)].join('\n\n'),
  )
  if (awaited === undefined) return EXIT.done
  output.note(describeAwaited(awaited))
  return EXIT.waiting
}

const iso = (instant: number | null) => (instant === null ? undefined : new Date(instant).toISOString())

function describeRun(run: Run, attempts: readonly Attempt[], lateCount: number): string {
  const { stdout, stderr } = (run.result ?? {}) as { stdout?: Printed; stderr?: Printed }
  const lines = [
    ['run', run.id],
    ['state', stateOf(run)],
    ['error', run.error ?? ''],
    ['thread', run.threadId],
    ['agent', run.agent],
    ['asked for', asked(run)],
    ['folder', run.request.kind === 'command' ? run.request.cwd : ''],
    ['timeout', run.request.timeoutMs === undefined ? '' : formatDuration(run.request.timeoutMs)],
    ['created', iso(run.createdAt) ?? ''],
    ['started', iso(run.startedAt) ?? ''],
    ['ended', iso(run.endedAt) ?? ''],
    [
      'cancelled by',
      run.cancelBy === null ? '' : `${run.cancelBy}${run.cancelReason === null ? '' : `: ${run.cancelReason}`}`,
    ],
    ['attempts', attempts.map(({ number, outcome }) => `${number} ${outcome ?? 'under way'}`).join(', ')],
    ['late results', lateCount === 0 ? '' : `${lateCount}, kept beside the run and not applied (--json shows them)`],
  ].filter(([, value]) => value !== '')
  const facts = lines.map(([name, value]) => `${`${name}:`.padEnd(14)}${visible(value ?? '')}`).join('\n')
  return [facts, printed('standard output', stdout), printed('standard error', stderr)]
    .filter((part) => part !== '')
    .join('\n\n')
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

/** Long enough for TERM, grace and KILL, with room for a busy machine. */
const CANCEL_WAIT_MS = 30_000

async function cancel(context: Context, given: string, flags: CancelFlags): Promise<number> {
  const { runtime, output } = context
  const { id } = await theRun(runtime.store, given)
  const request = {
    by: `command line (process ${process.pid})`,
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
  }
  const answer = await runtime.store.apply(cancelRun, id, request)
  if (answer.kind === 'unknown-run') throw new HoldfastError('not-found/run', `there is no run "${given}"`)
  if (answer.kind === 'already-terminal') {
    throw new HoldfastError('runs/already-terminal', `${id} has ended already: ${answer.run.state}`, {
      remedy: 'there is nothing left to cancel',
    })
  }
  const { run, stopped } = flags.wait
    ? await untilStopped(context, answer.run)
    : { run: answer.run, stopped: isTerminal(answer.run.state) }
  output.result(viewRun(run), () =>
    stopped ? `${id} ${run.state}` : `${id} will be cancelled; its worker is stopping it`,
  )
  if (stopped || !flags.wait) return EXIT.done
  output.note('the request is stored and final, but its worker has not stopped it yet; `holdfast doctor` says why')
  return EXIT.failed
}

/**
 * It is stopped when everything is that it started. Where the worker itself is gone and no daemon is there, this process
 * stops what it left behind.
 */
export async function untilStopped(
  { runtime }: Context,
  run: Run,
): Promise<{ readonly run: Run; readonly stopped: boolean }> {
  const open = (await runtime.store.read(familyOf, run.id)).filter(({ state }) => !isTerminal(state))
  if (open.length === 0) return { run, stopped: true }
  progress('stopping')
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  try {
    for (const { id } of open) await worker.recover(id)
    const ended = await Promise.all(open.map(({ id }) => untilEnded(runtime, id, CANCEL_WAIT_MS)))
    const stopped = ended.every((each) => each === undefined || isTerminal(each.state))
    return { run: ended.find((each) => each?.id === run.id) ?? run, stopped }
  } finally {
    await worker.drain(0)
  }
}

async function disown({ runtime, output }: Context, given: string): Promise<number> {
  const { id } = await theRun(runtime.store, given)
  const held = (await runtime.store.read(heldAttempts)).find(({ runId }) => runId === id)
  if (held === undefined || held.leaseOver === 0 || judgeProcess(held.identity) !== 'unreachable') {
    throw new HoldfastError('runs/not-lost', `${id} is not held by a silent worker on a host that cannot be reached`, {
      remedy: 'a daemon recovers runs of this host by itself; `holdfast runs cancel` stops one that is running',
    })
  }
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  const taker = {
    workerId: worker.id,
    leaseMs: runtime.leaseMs,
    attemptId: newAttemptId(runtime.random),
    mark: runtime.random.hex(16),
  }
  const ended = await runtime.store.apply(disownRun, held, taker, `the operator (process ${process.pid})`)
  await worker.stop()
  if (ended === undefined)
    throw new HoldfastError('runs/not-lost', `${id} was settled by somebody else meanwhile`, {
      remedy: '`holdfast runs show` says how',
    })
  output.result(viewRun(ended.run), () => `${id} ${ended.run.state}`)
  return EXIT.done
}
