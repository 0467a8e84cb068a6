import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { readWholeThread, viewWholeThread } from '../runs/thread-view.ts'
import type { WholeThread } from '../runs/thread-view.ts'
import { LIVE_SCHEDULES, listSchedules } from '../schedule/schedule.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { viewSchedule } from '../schedule/view.ts'
import { threadFamily, threadsAtWork } from '../sessions/tree.ts'
import { doing, treeOf, viewBranch } from '../sessions/branch.ts'
import type { Branch } from '../sessions/branch.ts'
import { viewThread } from '../threads/view.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { describeTurns } from './conversation.ts'
import { EXIT } from './exit-code.ts'
import { followupTable } from './followup.ts'
import type { SetExit } from './main.ts'
import { messageTable } from './messages.ts'
import { ago, table, visibleLine } from './output.ts'
import { commandLine } from './runs.ts'
import { threadOrSelf } from './self.ts'
import { remove, stop } from './threads-stop.ts'
import { tail } from './threads-tail.ts'
import type { TailFlags } from './threads-tail.ts'
import { describeBranch } from './threads-tree.ts'

export function addThreads(program: Command, setExit: SetExit): void {
  const threads = program.command('threads').description('the durable conversations that runs belong to')
  const work = (command: Command, how: (context: Context) => Promise<number>) =>
    withRuntime(command, how, 'welcome').then(setExit)
  threads
    .command('list')
    .description('the newest threads first, with what each is at and what waits in its inbox')
    .action((_: unknown, command: Command) => work(command, list))
  threads
    .command('show')
    .description('one thread: its runs, what waits for it, and the tree of those that it started')
    .argument('<thread>', 'a thread, or self')
    .action((id: string, _: unknown, command: Command) => work(command, (context) => show(context, id)))
  threads
    .command('tail')
    .description('what happens to a thread, as it happens; with --json one value a line')
    .argument('<thread>', 'a thread, or self')
    .option('--children', 'and to those that it started, at any depth')
    .option('--after <seq>', 'only what came after this sequence number', Number, 0)
    .option('--no-follow', 'end when everything that is recorded was shown')
    .action((id: string, flags: TailFlags, command: Command) => work(command, (context) => tail(context, id, flags)))
  threads
    .command('stop')
    .description(
      'cancel what is under way and give it no further turn until a person writes to it; what comes in waits',
    )
    .argument('<thread>', 'a thread, or self')
    .action((id: string, _: unknown, command: Command) => work(command, (context) => stop(context, id)))
  threads
    .command('remove')
    .description('end a thread: what waits in its inbox becomes dead letters, and its name may start a new one')
    .argument('<thread>', 'a thread, or self')
    .option('--force', 'cancel what is under way first')
    .action((id: string, flags: { force?: boolean }, command: Command) =>
      work(command, (context) => remove(context, id, flags)),
    )
}

async function list({ runtime, output }: Context): Promise<number> {
  const threads = await runtime.store.read(threadsAtWork, LIMITS.page)
  const now = runtime.clock.now()
  output.result(
    threads.map((thread) => ({ ...viewThread(thread), doing: doing(thread), pending: thread.pending })),
    () =>
      threads.length === 0
        ? 'no threads'
        : table(
            ['THREAD', 'AGENT', 'STATE', 'WAITING', 'PARENT', 'CREATED'],
            threads.map((thread) => [
              thread.id,
              thread.agent,
              doing(thread),
              String(thread.pending),
              thread.parentId ?? '',
              ago(thread.createdAt, now),
            ]),
          ),
  )
  return EXIT.done
}

async function show(context: Context, given: string): Promise<number> {
  const { runtime, output } = context
  const { id } = await threadOrSelf(context, given)
  const whole = await runtime.store.read(readWholeThread, id, LIMITS.threadShown)
  const tree = treeOf(id, await runtime.store.read(threadFamily, id, LIMITS.threadShown))
  if (whole === undefined || tree === undefined)
    throw new HoldfastError('not-found/thread', `there is no thread "${given}"`)
  const coming = await runtime.store.read(listSchedules, {
    targetThread: id,
    states: LIVE_SCHEDULES,
    limit: LIMITS.page,
  })
  const value = { ...viewWholeThread(whole), ...viewBranch(tree), schedules: coming.map(viewSchedule) }
  output.result(value, () => describe(whole, tree, coming, runtime.clock.now()))
  return EXIT.done
}

function describe(
  { thread, runs, entries, actions, messages }: WholeThread,
  tree: Branch,
  coming: readonly Schedule[],
  now: number,
): string {
  const waiting = messages.filter(({ state }) => state === 'pending')
  return [
    `thread:  ${visibleLine(thread.id)}`,
    `agent:   ${visibleLine(thread.agent)}`,
    `state:   ${doing(tree.thread)}`,
    ...(thread.parentId === null ? [] : [`parent:  ${visibleLine(thread.parentId)}`]),
    '',
    runs.length === 0
      ? 'no runs'
      : table(
          ['RUN', 'STATE', 'CREATED', 'COMMAND'],
          runs.map((run) => [run.id, run.state, ago(run.createdAt, now), commandLine(run)]),
        ),
    ...(tree.children.length === 0 ? [] : ['', describeBranch(tree)]),
    ...(waiting.length === 0 ? [] : ['', 'not seen yet:', messageTable(waiting, now)]),
    ...(coming.length === 0 ? [] : ['', 'to come:', followupTable(coming, now)]),
    ...describeTurns(entries, actions).map((text) => `\n${text}`),
  ].join('\n')
}
