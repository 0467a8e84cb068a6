import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { newMessageId, newRunId, newThreadId } from '../base/ids.ts'
import type { RunId } from '../base/ids.ts'
import { judgeProcess } from '../processes/identity.ts'
import { sendMessage } from '../runs/send.ts'
import type { Sending } from '../runs/send.ts'
import { isTerminal } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { viewRun } from '../runs/view.ts'
import { liveDaemons } from '../runs/worker.ts'
import { findMessage } from '../threads/message.ts'
import { viewMessage } from '../threads/view.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theThread } from './find.ts'
import type { SetExit } from './main.ts'
import { progress } from './output.ts'
import { nextChange, untilEnded } from './wait.ts'

interface SendFlags {
  readonly agent?: string
  readonly key?: string
  readonly wait?: boolean
}

export function addSend(program: Command, setExit: SetExit): void {
  program
    .command('send')
    .description("put a message into a thread's inbox: to a thread, or with --agent to a new one")
    .argument('<words...>', 'THREAD TEXT, or with --agent just TEXT')
    .option('--agent <name>', 'start a new thread with this agent')
    .option('--key <key>', 'the same key is the same message')
    .option('--wait', 'wait for the run that takes it')
    .action(async (words: string[], flags: SendFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => send(context, words, flags)))
    })
}

async function send(context: Context, words: readonly string[], flags: SendFlags): Promise<number> {
  const { runtime, output } = context
  const sending = await addressed(context, words, flags)
  const { message, runId } = await runtime.store.apply(sendMessage, sending)
  if (flags.wait === true) return wait(context, message.id, runId)
  const value = { message: viewMessage(message), threadId: message.threadId, ...(runId === undefined ? {} : { runId }) }
  output.result(value, () => `${message.threadId}${runId === undefined ? '' : ` ${runId}`}`)
  if (!(await hasDaemon(context))) output.note('it is stored, but no daemon is running: `holdfast up` will see to it')
  return EXIT.done
}

async function addressed({ runtime }: Context, words: readonly string[], flags: SendFlags): Promise<Sending> {
  const { random } = runtime
  const ids = { messageId: newMessageId(random), runId: newRunId(random) }
  const key = flags.key ?? ids.messageId
  if (flags.agent !== undefined) {
    const agent = knownAgent(runtime.agents, flags.agent)
    return { ...ids, key, agent, threadId: newThreadId(random), text: textOf(words) }
  }
  const [given = '', ...rest] = words
  const thread = await theThread(runtime.store, given)
  if (!runtime.agents.includes(thread.agent)) {
    throw new HoldfastError(
      'usage/no-agent',
      `thread ${thread.id} belongs to "${thread.agent}", which is no agent of the configuration`,
      {
        remedy: 'send to a thread of an agent, or start one with --agent',
      },
    )
  }
  return { ...ids, key, agent: thread.agent, threadId: thread.id, text: textOf(rest) }
}

function knownAgent(known: readonly string[], agent: string): string {
  if (known.includes(agent)) return agent
  const there = known.length === 0 ? 'the configuration has none' : `there are: ${known.join(', ')}`
  throw new HoldfastError('not-found/agent', `there is no agent "${agent}"`, { remedy: there })
}

function textOf(words: readonly string[]): string {
  const text = words.join(' ').trim()
  if (text !== '') return text
  throw new HoldfastError('usage/no-text', 'there is nothing to send', {
    remedy: 'write the message behind the thread',
  })
}

async function hasDaemon({ runtime }: Context): Promise<boolean> {
  const daemons = await runtime.store.read(liveDaemons, null)
  return daemons.some(({ identity }) => judgeProcess(identity) !== 'dead')
}

/** Where no daemon is running, this process carries the run out itself. */
async function wait(context: Context, messageId: string, first: RunId | undefined): Promise<number> {
  const { runtime } = context
  if (await hasDaemon(context)) return report(context, await untilTaken(context, messageId, first))
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  try {
    progress('no daemon is running; this process carries it out')
    if (first !== undefined) await worker.perform(first)
    return report(context, await untilTaken(context, messageId, first))
  } finally {
    await worker.drain(0)
  }
}

async function untilTaken({ runtime }: Context, messageId: string, first: RunId | undefined): Promise<Run> {
  for (;;) {
    const changed = nextChange(runtime, 1_000)
    const message = await runtime.store.read(findMessage, messageId)
    const taker = message?.consumedByRun ?? first
    const run = taker === undefined ? undefined : await untilEnded(runtime, taker)
    if (run !== undefined && isTerminal(run.state)) {
      changed.forget()
      return run
    }
    await changed.heard
  }
}

function report({ output }: Context, run: Run): number {
  const text = (run.result as { text?: string } | null)?.text
  output.result(viewRun(run), () => text ?? `${run.state}${run.error === null ? '' : `: ${run.error}`}`)
  if (run.state === 'succeeded') return EXIT.done
  return run.state === 'cancelled' ? EXIT.refused : EXIT.failed
}
