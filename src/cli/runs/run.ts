import { resolve } from 'node:path'

import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'

import { HoldfastError, describeError } from '../../base/errors.ts'
import { newRunId, newThreadId } from '../../base/ids.ts'
import type { RunId, ThreadId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { beginningOf } from '../../base/text.ts'
import { harmlessVariables } from '../../base/variables.ts'
import { thisPlace } from '../../processes/identity.ts'
import { cancelRun } from '../../runs/cancel.ts'
import { findRun, isTerminal } from '../../runs/run.ts'
import type { Run } from '../../runs/run.ts'
import { submitRun } from '../../runs/submit.ts'
import type { Submission, Submitted } from '../../runs/submit.ts'
import { readWholeRun, viewRun } from '../../runs/view.ts'
import { findThread } from '../../threads/thread.ts'
import type { Worker } from '../../workers/worker.ts'
import { viewWorkspace } from '../../workspace/view.ts'
import { findWorkspace } from '../../workspace/workspace.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { durationOption } from '../words/duration-option.ts'
import { EXIT, signalExitCode } from '../words/exit-code.ts'
import { theThread } from '../../control/find.ts'
import { brokenPipe, terminal } from './foreground.ts'
import type { SetExit } from '../main.ts'
import { progress } from '../words/output.ts'
import { hasDaemon } from '../around/person.ts'
import { noteFiles } from './run-outcome.ts'
import { addWorkspaceOptions, lookAtRepository, workspaceAsked } from './run-workspace.ts'
import type { WorkspaceFlags } from './run-workspace.ts'
import { outsideOfSession, threadOrSelf } from '../around/self.ts'
import { whenToldToStop } from '../around/told-to-stop.ts'
import type { WorkspaceView } from '../words/views.ts'
import { untilEnded } from '../around/wait.ts'

interface RunFlags extends WorkspaceFlags {
  readonly agent: string
  readonly thread?: string
  readonly parent?: string
  readonly timeout?: number
  readonly queueTimeout?: number
  readonly key?: string
  readonly priority: number
  readonly detach?: boolean
  readonly notify: boolean
}

export function addRun(own: Command, setExit: SetExit): void {
  addWorkspaceOptions(own)
    .option('--agent <name>', 'in whose name it runs: capacity and breakers are counted by it', 'command')
    .option(
      '--thread <thread>',
      'the thread it belongs to, by its id or its whole name, which may be new; one run at a time (default: a new one)',
    )
    .option('--parent <thread>', 'the thread that gets its completion; "self" is the one this process runs in')
    .option('--timeout <duration>', 'how long it may run, as 30m', durationOption)
    .option('--queue-timeout <duration>', 'how long it may wait for a slot', durationOption)
    .option('--key <key>', 'the same key is the same run')
    .option('--priority <number>', 'higher goes first', wholeNumber, 0)
    .option('--detach', 'store it and return; a daemon executes it')
    .option('--no-notify', 'send no completion to the parent')
    .passThroughOptions()
    .action(async (argv: [string, ...string[]], flags: RunFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => runCommand(context, argv, flags)))
    })
}

async function runCommand(context: Context, argv: [string, ...string[]], flags: RunFlags): Promise<number> {
  const submission = await describeRun(context, argv, flags)
  const { workspace } = submission.request
  if (workspace !== undefined) await lookAtRepository(context, workspace, flags.init === true)
  return flags.detach === true ? runDetached(context, submission) : runHere(context, submission)
}

async function describeRun(context: Context, argv: [string, ...string[]], flags: RunFlags): Promise<Submission> {
  const { runtime, environment } = context
  const { thread, key, timeout, queueTimeout, agent, priority, notify } = flags
  const workspace = workspaceAsked(flags)
  const parentThreadId = await parentOf(context, flags.parent)
  return {
    id: newRunId(runtime.random),
    threadId: thread === undefined ? newThreadId(runtime.random) : await threadNamed(context, thread),
    agent,
    priority,
    notify,
    backlogLimit: runtime.backlog,
    request: {
      kind: 'command',
      argv,
      // In both modes the same folder; a transaction has it in a tree of its own.
      cwd: workspace?.root ?? resolve('.'),
      ...(timeout === undefined ? {} : { timeoutMs: timeout }),
      ...(flags.detach === true ? { env: harmlessVariables(environment.variables) } : {}),
      ...(workspace === undefined ? {} : { workspace }),
    },
    ...(workspace === undefined ? {} : { host: thisPlace().host }),
    ...(key === undefined ? {} : { key }),
    ...(queueTimeout === undefined ? {} : { expiresInMs: queueTimeout }),
    ...(parentThreadId === undefined ? {} : { parentThreadId }),
    // Cancelling the run that this is started from cancels this one; it does not wait for it.
    ...(environment.run === undefined || parentThreadId !== environment.thread
      ? {}
      : { parentRunId: environment.run, parentMode: 'detached' as const }),
  }
}

/** A process that a run started has that run's thread as parent, unless it says otherwise. */
async function parentOf(context: Context, given: string | undefined): Promise<ThreadId | undefined> {
  return given === undefined ? context.environment.thread : (await threadOrSelf(context, given)).id
}

const THREAD_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/

/**
 * A thread by its whole name, which opens a new one if it is not taken yet, or by an id of ours or the beginning of one.
 * Never by the beginning of a name: `build` is not `build-2`.
 */
async function threadNamed({ runtime }: Context, given: string): Promise<ThreadId> {
  if (given === 'self') throw notByItself()
  const isOurs = given.startsWith('thr_')
  if (!isOurs && THREAD_NAME.test(given) && given.length <= LIMITS.nameLength) return given as ThreadId
  if (isOurs) return (await theThread(runtime.store, given)).id
  const found = await runtime.store.read(findThread, given as ThreadId)
  if (found !== undefined) return found.id
  throw new HoldfastError('usage/thread-name', `"${beginningOf(given, SHOWN_BYTES)}" cannot be the name of a thread`, {
    remedy: `begin with a letter or a digit and go on with these and . _ : -, up to ${LIMITS.nameLength} of them`,
  })
}

/** It would wait for the end of the run that it is a part of. */
const notByItself = () =>
  new HoldfastError('usage/thread-name', '"self" is the thread that this process belongs to, not one for its child', {
    remedy: 'leave --thread out for a new one; --parent self tells your own thread how it ended',
  })

/** Of a name that may be too long to be read. */
const SHOWN_BYTES = 100

async function runDetached(context: Context, submission: Submission): Promise<number> {
  const { runtime, output } = context
  const run = accepted(await runtime.store.apply(submitRun, submission))
  output.result(viewRun(run), () => run.id)
  if (!(await hasDaemon({ local: context })))
    output.note('it is stored, but no daemon is running: `holdfast up` will execute it')
  return EXIT.done
}

/** In the foreground this process is the worker, so the command has its terminal and environment. */
async function runHere(context: Context, submission: Submission): Promise<number> {
  const { runtime, output, environment } = context
  const pipe = brokenPipe()
  const foreground = { ...terminal(output.json, pipe.onBroken), env: outsideOfSession(environment.variables) }
  const worker = await runtime.registerWorker('command', { concurrency: 1, foreground })
  const stops = whenToldToStop(pipe.broken)
  try {
    const answer = await runtime.store.apply(submitRun, { ...submission, forWorker: worker.id })
    const { id } = accepted(answer)
    if (answer.kind === 'existing') progress(`the key belongs to ${id}; waiting for its end`)
    stops.cancel((by) => cancelHere(context, id, by))
    await untilDone(context, worker, id)
    return await report(context, id)
  } finally {
    stops.ignore()
    // What it took over while it waited goes on, and is handed to whoever comes next.
    await worker.drain(0)
  }
}

/** Carries the run out when it is this process's to do, waits when it is another's, and recovers what nobody does. */
async function untilDone({ runtime }: Context, worker: Worker, id: RunId): Promise<void> {
  let told = false
  for (;;) {
    const run = await runtime.store.read(findRun, id)
    if (run === undefined || isTerminal(run.state)) return
    if (run.state === 'queued' && (await worker.perform(id))) continue
    if (!told && run.state === 'queued') progress('waiting for a slot')
    told = true
    await untilEnded(runtime, id, 1_000)
    await worker.tend()
  }
}

function accepted(answer: Submitted): Run {
  if (answer.kind === 'backlog-full') {
    throw new HoldfastError('capacity/backlog-full', `${answer.limit} runs are waiting already`, {
      remedy: 'try again when some have ended, or raise capacity.backlog in the configuration',
      retry: { afterMs: 5_000 },
    })
  }
  if (answer.kind === 'parent-cancelled') {
    throw new HoldfastError(
      'runs/parent-cancelled',
      `${answer.parentRunId}, from which this is started, is being cancelled`,
      {
        remedy: 'start it from outside of that run, if it is still wanted',
      },
    )
  }
  if (answer.kind === 'conflict') {
    throw new HoldfastError(
      'runs/key-conflict',
      `this key belongs to ${answer.run.id}, which asked for something else`,
      {
        remedy: 'use another key, or ask for exactly the same',
      },
    )
  }
  return answer.run
}

async function cancelHere({ runtime, output }: Context, id: RunId, by: string): Promise<void> {
  progress('cancelling')
  await runtime.store.apply(cancelRun, id, { by }).catch((error: unknown) => output.note(describeError(error)))
}

async function report(context: Context, id: RunId): Promise<number> {
  const { runtime, output } = context
  const whole = await runtime.store.read(readWholeRun, id)
  if (whole === undefined) throw gone(id)
  const { run, late } = whole
  const workspace = run.workspace === null ? undefined : await filesOf(context, id)
  if (output.json) output.result({ ...viewRun(run, late), ...(workspace && { workspace }) }, () => '')
  else if (run.state !== 'succeeded' && run.code !== 'exit') output.note(`${describeEnd(run, workspace)} (${run.id})`)
  if (workspace !== undefined) noteFiles(output, workspace)
  return mirroredExit(run)
}

const gone = (id: RunId) =>
  new HoldfastError('not-found/run', `${id} has ended, and was forgotten before it could be told how`, {
    remedy: 'keep runs for longer: "retention" in the configuration',
  })

/** As the API has it, so that everybody reads the same words. */
async function filesOf({ runtime }: Context, id: RunId): Promise<WorkspaceView | undefined> {
  const workspace = await runtime.store.read(findWorkspace, id)
  return workspace === undefined ? undefined : (viewWorkspace(workspace) as WorkspaceView)
}

/** What a check printed is told with what became of the files. */
function describeEnd({ state, code, error }: Run, workspace: WorkspaceView | undefined): string {
  const why = code === 'validation' ? (workspace?.check?.why ?? error) : error
  return why === null ? state : `${state}: ${why}`
}

/** The command's own exit code; a run that did not succeed never exits 0. */
function mirroredExit(run: Run): number {
  const { exitCode, signal } = (run.result ?? {}) as { exitCode?: number | null; signal?: string | null }
  const own = signal == null ? exitCode : signalExitCode(signal)
  if (run.state === 'succeeded') return own ?? EXIT.done
  if (own !== undefined && own !== null && own !== 0) return own
  return run.state === 'cancelled' ? EXIT.refused : EXIT.failed
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new InvalidArgumentError('a whole number is wanted')
  return value
}
