import type { Command } from 'commander'

import { awaitedBy, viewAwaited } from '../actions/desk.ts'
import type { Awaited } from '../actions/desk.ts'
import { HoldfastError, describeError } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { judgeProcess } from '../processes/identity.ts'
import { addressLetter, viewSent } from '../runs/address.ts'
import type { Letter } from '../runs/address.ts'
import { cancelRun } from '../runs/cancel.ts'
import { familyOf } from '../runs/children.ts'
import { sendMessage } from '../runs/send.ts'
import type { Sending } from '../runs/send.ts'
import { findRun, isTerminal, listRuns } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { viewRun } from '../runs/view.ts'
import { liveDaemons } from '../runs/worker.ts'
import { CLIENTS } from '../sessions/session.ts'
import { findMessage } from '../threads/message.ts'
import type { Message } from '../threads/message.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { durationOption } from './duration-option.ts'
import { EXIT, signalExitCode } from './exit-code.ts'
import { theThread } from '../control/find.ts'
import type { SetExit } from './main.ts'
import { progress, visible } from './output.ts'
import { describeAwaited } from './show-matter.ts'
import { whenToldToStop } from './told-to-stop.ts'
import { nextChange } from './wait.ts'

interface SendFlags {
  readonly agent?: string
  readonly key?: string
  readonly wait?: boolean
  readonly timeout?: number
}

export function addSend(program: Command, setExit: SetExit): void {
  program
    .command('send')
    .description("put a message into a thread's inbox: to a thread, or with --agent to a new one")
    .argument('<text...>', 'THREAD TEXT, or with --agent just TEXT')
    .option('--agent <name>', 'start a new thread with this agent')
    .option('--key <key>', 'the same key is the same message')
    .option('--wait', 'wait for the run that takes it')
    .option('--timeout <duration>', 'how long the run that it starts may take, as 30m', durationOption)
    .action(async (words: string[], flags: SendFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => send(context, words, flags)))
    })
}

async function send(context: Context, words: readonly string[], flags: SendFlags): Promise<number> {
  const { runtime, output, environment } = context
  const timeout = flags.timeout === undefined ? {} : { timeoutMs: flags.timeout }
  const letter = await addressed(context, words, flags)
  const sending = addressLetter(runtime, letter)
  if (flags.wait === true && sending.wakes === false && NOBODY_ANSWERS.has(sending.agent)) throw noAnswer(sending)
  // What is sent from inside of a run comes from its thread, and is labelled so.
  const isOther = environment.thread !== undefined && environment.thread !== sending.threadId
  const from = isOther ? { from: environment.thread } : {}
  const sent = await runtime.store.apply(sendMessage, { ...sending, ...timeout, ...from })
  const value = viewSent(sent, letter.text)
  const { message, runId } = sent
  if (flags.wait === true) return wait(context, message.id, runId)
  output.result(value, () => `${message.threadId}${runId === undefined ? '' : ` ${runId}`}`)
  if (runId === undefined) output.note(`it waits in the inbox of ${message.threadId}`)
  else if (!(await hasDaemon(context)))
    output.note('it is stored, but no daemon is running: `holdfast up` will see to it')
  return EXIT.done
}

/** Threads of plain commands and of sessions: what is sent to them is read there, and not answered here. */
const NOBODY_ANSWERS: ReadonlySet<string> = new Set(['command', ...CLIENTS])

const noAnswer = ({ threadId, agent }: Sending) =>
  new HoldfastError('usage/no-answer', `thread ${threadId} is one of ${agent}, which answers nobody here`, {
    remedy: 'send without --wait: it waits in the inbox',
  })

async function addressed({ runtime }: Context, words: readonly string[], flags: SendFlags): Promise<Letter> {
  const key = flags.key === undefined ? {} : { key: flags.key }
  if (flags.agent !== undefined) return { to: { agent: flags.agent }, text: words.join(' ').trim(), ...key }
  const [given = '', ...rest] = words
  return { to: { thread: await theThread(runtime.store, given) }, text: rest.join(' ').trim(), ...key }
}

async function hasDaemon({ runtime }: Context): Promise<boolean> {
  const daemons = await runtime.store.read(liveDaemons, null)
  return daemons.some(({ identity }) => judgeProcess(identity) !== 'dead')
}

async function wait(context: Context, messageId: string, first: RunId | undefined): Promise<number> {
  return (await hasDaemon(context)) ? waitForDaemon(context, messageId, first) : carryOut(context, messageId, first)
}

/** The daemon goes on with it, whoever waits. */
async function waitForDaemon(context: Context, messageId: string, first: RunId | undefined): Promise<number> {
  const stops = whenToldToStop()
  try {
    const left = new Promise<string>((leave) => stops.cancel((by) => leave(by)))
    const run = await Promise.race([untilTaken(context, messageId, first), left])
    if (typeof run !== 'string') return report(context, run)
    context.output.note(`not waiting any more, but it goes on; \`holdfast runs cancel ${first ?? 'RUN'}\` stops it`)
    return signalExitCode(run)
  } finally {
    stops.ignore()
  }
}

/** Where no daemon is running, this process carries the run out itself, and to stop this process is to cancel the run. */
async function carryOut(context: Context, messageId: string, first: RunId | undefined): Promise<number> {
  const { runtime, output } = context
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  const stops = whenToldToStop()
  const cancel = async (by: string) => {
    output.note(`cancelling ${first ?? 'nothing: another run has it'}`)
    if (first === undefined) return
    await runtime.store.apply(cancelRun, first, { by }).catch((error: unknown) => output.note(describeError(error)))
  }
  try {
    progress('no daemon is running; this process carries it out')
    stops.cancel(cancel)
    // Nobody else is there for its children either.
    const tend = async (run: Run | undefined) => {
      const family = run === undefined ? [] : await runtime.store.read(familyOf, run.id)
      const queued = family.filter(({ state }) => state === 'queued')
      const carried = await Promise.all(queued.map(({ id }) => worker.perform(id)))
      if (!carried.includes(true)) await worker.tend()
    }
    return report(context, await untilTaken(context, messageId, first, tend))
  } finally {
    stops.ignore()
    await worker.drain(0)
  }
}

const LOOK_AGAIN_MS = 1_000

interface Taken {
  readonly run: Run
  /** It cannot go on before a person has said something. */
  readonly awaited?: Awaited
}

/** The run that took the message, once it has ended or waits for a person. `tend` is called as long as it has not, about once a second. */
async function untilTaken(
  { runtime }: Context,
  messageId: string,
  first: RunId | undefined,
  tend: (run: Run | undefined) => Promise<void> = () => Promise.resolve(),
): Promise<Taken> {
  for (;;) {
    const changed = nextChange(runtime, LOOK_AGAIN_MS)
    const message = await runtime.store.read(findMessage, messageId)
    const run = await runFor(runtime, message, first)
    // One that ended without it leaves it to the next.
    if (run !== undefined && isTerminal(run.state) && (message === undefined || message.consumedByRun === run.id)) {
      changed.forget()
      return { run }
    }
    const awaited = run?.state === 'parked' ? await runtime.store.read(awaitedBy, run.id) : undefined
    if (run !== undefined && awaited !== undefined) {
      changed.forget()
      return { run, awaited }
    }
    if (message !== undefined && isLost(message)) {
      changed.forget()
      throw new HoldfastError(
        'messages/not-answered',
        `no run will take ${messageId}: ${message.reason ?? 'it was taken by hand'}`,
        {
          remedy: '`holdfast inbox show` has it',
        },
      )
    }
    await tend(run)
    await changed.heard
  }
}

/** The run that took it, or the one that is next to take it. */
async function runFor({ store }: Context['runtime'], message: Message | undefined, first: RunId | undefined) {
  if (message?.consumedByRun != null) return store.read(findRun, message.consumedByRun)
  const states = ['queued', 'running', 'parked'] as const
  const [active] =
    message === undefined ? [] : await store.read(listRuns, { threadId: message.threadId, states, limit: 1 })
  return active ?? (first === undefined ? undefined : store.read(findRun, first))
}

const isLost = ({ state, consumedByRun }: Message) =>
  state === 'dead' || state === 'replaced' || (state === 'consumed' && consumedByRun === null)

function report({ output }: Context, { run, awaited }: Taken): number {
  if (awaited !== undefined) {
    output.result({ ...viewRun(run), waitsFor: viewAwaited(awaited) }, () => '')
    output.note(`${run.id}: ${describeAwaited(awaited)}`)
    return EXIT.waiting
  }
  output.result(viewRun(run), () => visible(answerOf(run)))
  if (run.state === 'succeeded') return EXIT.done
  output.note(`\`holdfast runs show ${run.id}\` has the rest`)
  return run.state === 'cancelled' ? EXIT.refused : EXIT.failed
}

/** What it said; of a run that did not succeed also why, or a command that failed without a word would leave none. */
function answerOf({ state, error, result }: Run): string {
  const text = (result as { readonly text?: string } | null)?.text ?? ''
  if (state === 'succeeded') return text
  return [text, `${state}${error === null ? '' : `: ${error}`}`].filter((part) => part !== '').join('\n')
}
