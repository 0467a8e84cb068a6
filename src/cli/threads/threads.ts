import type { Command } from 'commander'

import { LIMITS } from '../../base/limits.ts'
import { collect } from '../around/collect.ts'
import { withApi, withRuntime } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { describeTurns } from '../runs/conversation.ts'
import { sequenceOption } from '../words/count-option.ts'
import { EXIT } from '../words/exit-code.ts'
import { followupTable } from '../schedules/followup.ts'
import type { SetExit } from '../main.ts'
import { messageTable } from './messages.ts'
import { ago, table, visibleLine } from '../words/output.ts'
import { commandLine } from '../runs/runs.ts'
import { namedThread } from '../around/self.ts'
import { remove, resume, stop } from './threads-stop.ts'
import { tail } from './threads-tail.ts'
import type { TailFlags } from './threads-tail.ts'
import { describeBranch } from './threads-tree.ts'
import type { ThreadView } from '../words/views.ts'

export function addThreads(threads: Command, setExit: SetExit): void {
  const work = (command: Command, how: (operator: Operator) => Promise<number>) => withApi(command, how).then(setExit)
  threads
    .command('list')
    .description('the newest threads first, with what each is at and what waits in its inbox')
    .action((_: unknown, command: Command) => work(command, list))
  threads
    .command('show')
    .description('one thread: its runs, what waits for it, and the tree of those that it started')
    .argument('<thread>', 'a thread, or self')
    .action((id: string, _: unknown, command: Command) => work(command, (operator) => show(operator, id)))
  threads
    .command('tail')
    .description('what happens to a thread, as it happens; with --json one value a line')
    .argument('<thread>', 'a thread, or self')
    .option('--children', 'and to those that it started, at any depth')
    .option('--after <seq>', 'only what came after this sequence number', sequenceOption, 0)
    .option('--no-follow', 'end when everything that is recorded was shown')
    .action(async (id: string, flags: TailFlags, command: Command) =>
      setExit(await withRuntime(command, (context) => tail(context, id, flags), 'beside')),
    )
  threads
    .command('stop')
    .description(
      'cancel what is under way and give it no further turn until a person writes to it; what comes in waits',
    )
    .argument('<thread>', 'a thread, or self')
    .action((id: string, _: unknown, command: Command) => work(command, (operator) => stop(operator, id)))
  threads
    .command('resume')
    .description('a stopped thread takes turns again, with what waits in its inbox')
    .argument('<thread>', 'a thread, or self')
    .action((id: string, _: unknown, command: Command) => work(command, (operator) => resume(operator, id)))
  threads
    .command('remove')
    .description('end a thread: what waits in its inbox becomes dead letters, and its name may start a new one')
    .argument('<thread>', 'a thread, or self')
    .option('--force', 'cancel what is under way first')
    .action((id: string, flags: { force?: boolean }, command: Command) =>
      work(command, (operator) => remove(operator, id, flags)),
    )
}

async function list({ api, output, clock }: Operator): Promise<number> {
  const threads = await collect(api, 'threads.list', {}, LIMITS.page)
  const now = clock.now()
  output.result(threads, () =>
    table(
      ['THREAD', 'AGENT', 'STATE', 'WAITING', 'PARENT', 'CREATED'],
      threads.map(({ id, agent, doing, pending, parentId = '', createdAt }) => [
        id,
        agent,
        doing,
        String(pending),
        parentId,
        ago(Date.parse(createdAt), now),
      ]),
      'no threads',
    ),
  )
  return EXIT.done
}

async function show(operator: Operator, given: string): Promise<number> {
  const { api, output, clock } = operator
  const thread = await api.call('threads.show', { thread: await namedThread(operator, given) })
  output.result(thread, () => describe(thread, clock.now()))
  return EXIT.done
}

function describe(thread: ThreadView, now: number): string {
  const { id, agent, doing, parentId, runs, messages, schedules, conversation, actions, children } = thread
  const waiting = messages.filter(({ state }) => state === 'pending')
  return [
    `thread:  ${visibleLine(id)}`,
    `agent:   ${visibleLine(agent)}`,
    `state:   ${doing}`,
    ...(parentId === undefined ? [] : [`parent:  ${visibleLine(parentId)}`]),
    '',
    table(
      ['RUN', 'STATE', 'CREATED', 'COMMAND'],
      runs.map((run) => [run.id, run.state, ago(Date.parse(run.createdAt), now), commandLine(run)]),
      'no runs',
    ),
    ...(children.length === 0 ? [] : ['', describeBranch(thread)]),
    ...(waiting.length === 0 ? [] : ['', 'not seen yet:', messageTable(waiting, now)]),
    ...(schedules.length === 0 ? [] : ['', 'to come:', followupTable(schedules, now)]),
    ...describeTurns(conversation, actions).map((text) => `\n${text}`),
  ].join('\n')
}
