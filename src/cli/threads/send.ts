import type { Command } from 'commander'

import type { Answer } from '../../api/routes.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import type { RunId } from '../../base/ids.ts'
import { familyOf } from '../../runs/children.ts'
import { isTerminal } from '../../runs/run.ts'
import { CLIENTS } from '../../sessions/session.ts'
import { withApi } from '../around/context.ts'
import type { Context, Operator } from '../around/context.ts'
import { durationOption } from '../words/duration-option.ts'
import { EXIT, signalExitCode } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { progress, visible } from '../words/output.ts'
import { hasDaemon } from '../around/person.ts'
import { onlyRun } from '../runs/runs.ts'
import { describeAwaited } from '../decisions/show-matter.ts'
import { whenToldToStop } from '../around/told-to-stop.ts'
import type { MessageView, WholeRunView } from '../words/views.ts'
import { nextChange } from '../around/wait.ts'

interface SendFlags {
  readonly agent?: string
  readonly key?: string
  readonly wait?: boolean
  readonly timeout?: number
}

export function addSend(own: Command, setExit: SetExit): void {
  own
    .option('--agent <name>', 'start a new thread with this agent')
    .option('--key <key>', 'the same key is the same message')
    .option('--wait', 'wait for the run that takes it')
    .option('--timeout <duration>', 'how long the run that it starts may take, as 30m', durationOption)
    .action(async (words: string[], flags: SendFlags, command: Command) => {
      setExit(await withApi(command, (operator) => send(operator, words, flags), 'needed'))
    })
}

async function send(operator: Operator, words: readonly string[], flags: SendFlags): Promise<number> {
  const { api, output, environment } = operator
  const { agent, key, timeout, wait: waits = false } = flags
  const [given = '', ...rest] = words
  const to = agent === undefined ? { threadId: given } : { agent }
  const text = (agent === undefined ? rest : words).join(' ').trim()
  if (agent === undefined && rest.length === 0) throw toNobody()
  if (waits && to.threadId !== undefined) await refuseSilence(operator, to.threadId)
  const sent = await api.call('messages.send', {
    ...to,
    text,
    ...(key === undefined ? {} : { key }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    // What is sent from inside of a run comes from its thread, and is labelled so.
    ...(environment.thread === undefined ? {} : { from: environment.thread }),
  })
  if (sent.anew === true)
    output.note(
      `${sent.threadId} had been removed: this begins a new thread of that name, without what was said before`,
    )
  if (waits) {
    await refuseVainWait(operator, agent)
    return wait(operator, sent)
  }
  const { threadId, runId } = sent
  output.result(sent, () => `${threadId}${runId === undefined ? '' : ` ${runId}`}`)
  if (runId === undefined) output.note(`it waits in the inbox of ${threadId}`)
  else if (!(await hasDaemon(operator)))
    output.note('it is stored, but no daemon is running: `holdfast up` will see to it')
  return EXIT.done
}

/** Threads of plain commands and of sessions: what is sent to them is read there, and not answered here. */
const NOBODY_ANSWERS: ReadonlySet<string> = new Set(['command', ...CLIENTS])

async function refuseSilence({ api }: Operator, given: string): Promise<void> {
  const { id, agent } = await api.call('threads.tree', { thread: given })
  if (!NOBODY_ANSWERS.has(agent)) return
  const { items } = await api.call('agents.list', {})
  if (items.some(({ name }) => name === agent)) return
  throw new HoldfastError('usage/no-answer', `thread ${id} is one of ${agent}, which answers nobody here`, {
    remedy: 'send without --wait: it waits in the inbox',
  })
}

const toNobody = () =>
  new HoldfastError('usage/send', 'it does not say both to whom and what', {
    remedy:
      '`holdfast send THREAD TEXT`, or `holdfast send --agent NAME TEXT` for a new thread; `holdfast threads list` shows those that are there',
  })

/** Stored it is; but who would wait for an agent that only a daemon has, while none is running, waits for ever. */
async function refuseVainWait(operator: Operator, agent: string | undefined): Promise<void> {
  const { local } = operator
  if (agent === undefined || local === undefined || local.runtime.agents.includes(agent)) return
  if (await hasDaemon(operator)) return
  throw new HoldfastError(
    'daemon/none',
    `it is stored, but no daemon is running, and the configuration here has no agent "${agent}"`,
    {
      remedy: 'start `holdfast up` with the configuration that has it',
    },
  )
}

type Sent = Answer<'messages.send'>

async function wait(operator: Operator, sent: Sent): Promise<number> {
  const { local } = operator
  if (local === undefined || (await hasDaemon(operator))) return waitForDaemon(operator, sent)
  return carryOut(operator, local, sent)
}

/** The daemon goes on with it, whoever waits. */
async function waitForDaemon(operator: Operator, sent: Sent): Promise<number> {
  const stops = whenToldToStop()
  try {
    const left = new Promise<string>((leave) => stops.cancel((by) => leave(by)))
    const run = await Promise.race([untilTaken(operator, sent), left])
    if (typeof run !== 'string') return await report(operator, run)
    const which = sent.runId ?? 'RUN'
    operator.output.note(`not waiting any more, but it goes on; \`holdfast runs cancel ${which}\` stops it`)
    return signalExitCode(run)
  } finally {
    stops.ignore()
  }
}

/** Where no daemon is running, this process carries the run out itself, and to stop this process is to cancel the run. */
async function carryOut(operator: Operator, { runtime }: Context, sent: Sent): Promise<number> {
  const { output, api } = operator
  const { runId: first } = sent
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  const stops = whenToldToStop()
  const cancel = async () => {
    output.note(`cancelling ${first ?? 'nothing: another run has it'}`)
    if (first === undefined) return
    await api.call('runs.cancel', { run: first }).catch((error: unknown) => output.note(describeError(error)))
  }
  try {
    progress('no daemon is running; this process carries it out')
    stops.cancel(cancel)
    // Nobody else is there for its children either.
    const tend = async (run: WholeRunView | undefined) => {
      const family = run === undefined ? [] : await runtime.store.read(familyOf, run.id as RunId)
      const queued = family.filter(({ state }) => state === 'queued')
      const carried = await Promise.all(queued.map(({ id }) => worker.perform(id)))
      if (!carried.includes(true)) await worker.tend()
    }
    return await report(operator, await untilTaken(operator, sent, tend))
  } finally {
    stops.ignore()
    await worker.drain(0)
  }
}

const LOOK_AGAIN_MS = 1_000

/** The run that took the message, once it has ended or waits for a person. `tend` is called as long as it has not, about once a second. */
async function untilTaken(
  operator: Operator,
  { message: { id }, runId }: Sent,
  tend: (run: WholeRunView | undefined) => Promise<void> = () => Promise.resolve(),
): Promise<WholeRunView> {
  for (;;) {
    const changed = nextChange(operator, LOOK_AGAIN_MS)
    const message = await found(operator.api.call('messages.show', { message: id }))
    const run = await runFor(operator, message, runId)
    if (run !== undefined && (isOver(run, message) || run.waitsFor !== undefined)) {
      changed.forget()
      return run
    }
    if (message !== undefined && isLost(message)) {
      changed.forget()
      throw new HoldfastError(
        'messages/not-answered',
        `no run will take ${id}: ${message.reason ?? 'it was taken by hand'}`,
        { remedy: '`holdfast inbox show` has it' },
      )
    }
    await tend(run)
    await changed.heard
  }
}

/** One that ended without it leaves it to the next. */
const isOver = (run: WholeRunView, message: MessageView | undefined) =>
  isTerminal(run.state) && (message === undefined || message.consumedByRun === run.id)

/** What is not there any more is an answer too. */
async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof HoldfastError && error.code.startsWith('not-found/')) return undefined
    throw error
  }
}

/** The run that took it, or the one that is next to take it. */
async function runFor({ api }: Operator, message: MessageView | undefined, first: string | undefined) {
  const show = (run: string) => found(api.call('runs.show', { run }))
  if (message?.consumedByRun !== undefined) return show(message.consumedByRun)
  const [active] =
    message === undefined
      ? []
      : (await api.call('runs.list', { thread: message.threadId, state: ['queued', 'running', 'parked'], limit: 1 }))
          .items
  const next = active?.id ?? first
  return next === undefined ? undefined : show(next)
}

const isLost = ({ state, consumedByRun }: MessageView) =>
  state === 'dead' || state === 'replaced' || (state === 'consumed' && consumedByRun === undefined)

async function report(operator: Operator, whole: WholeRunView): Promise<number> {
  const { output } = operator
  const { waitsFor } = whole
  const run = onlyRun(whole)
  if (waitsFor !== undefined) {
    output.result({ ...run, waitsFor }, () => '')
    output.note(`${run.id}: ${await describeAwaited(operator, waitsFor)}`)
    return EXIT.waiting
  }
  output.result(run, () => visible(answerOf(run)))
  if (run.state === 'succeeded') return EXIT.done
  output.note(`\`holdfast runs show ${run.id}\` has the rest`)
  return run.state === 'cancelled' ? EXIT.refused : EXIT.failed
}

/** What it said; of a run that did not succeed also why, or a command that failed without a word would leave none. */
function answerOf({ state, error, result }: Pick<WholeRunView, 'state' | 'error' | 'result'>): string {
  const text = (result as { readonly text?: string } | undefined)?.text ?? ''
  if (state === 'succeeded') return text
  return [text, `${state}${error === undefined ? '' : `: ${error}`}`].filter((part) => part !== '').join('\n')
}
