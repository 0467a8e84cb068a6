import type { Command } from 'commander'

import { actionsOfThread } from '../actions/action.ts'
import { viewAction } from '../actions/view.ts'
import { LIMITS } from '../base/limits.ts'
import { listRuns } from '../runs/run.ts'
import { viewRun, viewStep } from '../runs/view.ts'
import { conversationOf } from '../threads/conversation.ts'
import { listThreads } from '../threads/thread.ts'
import type { Thread } from '../threads/thread.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { describeTurns } from './conversation.ts'
import { EXIT } from './exit-code.ts'
import { theThread } from './find.ts'
import type { SetExit } from './main.ts'
import { ago, table } from './output.ts'
import { commandLine } from './runs.ts'

export function addThreads(program: Command, setExit: SetExit): void {
  const threads = program.command('threads').description('the durable conversations that runs belong to')
  threads
    .command('list')
    .description('the newest threads first')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, list)))
  threads
    .command('show')
    .description('one thread with its runs')
    .argument('<thread>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, id))),
    )
}

async function list({ runtime, output }: Context): Promise<number> {
  const threads = await runtime.store.read(listThreads, LIMITS.page)
  const now = runtime.clock.now()
  output.result(threads.map(viewThread), () =>
    threads.length === 0
      ? 'no threads'
      : table(
          ['THREAD', 'AGENT', 'PARENT', 'CREATED'],
          threads.map(({ id, agent, parentId, createdAt }) => [id, agent, parentId ?? '', ago(createdAt, now)]),
        ),
  )
  return EXIT.done
}

async function show({ runtime, output }: Context, given: string): Promise<number> {
  const thread = await theThread(runtime.store, given)
  const runs = await runtime.store.read(listRuns, { threadId: thread.id, limit: LIMITS.page })
  const entries = await runtime.store.read(conversationOf, thread.id, thread.generation)
  const actions = await runtime.store.read(actionsOfThread, thread.id)
  const now = runtime.clock.now()
  const conversation =
    entries.length === 0 ? {} : { conversation: entries.map(viewStep), actions: actions.map(viewAction) }
  output.result({ ...viewThread(thread), runs: runs.map((run) => viewRun(run)), ...conversation }, () =>
    [
      `thread:  ${thread.id}`,
      `agent:   ${thread.agent}`,
      ...(thread.parentId === null ? [] : [`parent:  ${thread.parentId}`]),
      '',
      runs.length === 0
        ? 'no runs'
        : table(
            ['RUN', 'STATE', 'CREATED', 'COMMAND'],
            runs.map((run) => [run.id, run.state, ago(run.createdAt, now), commandLine(run)]),
          ),
      ...describeTurns(entries, actions).map((text) => `\n${text}`),
    ].join('\n'),
  )
  return EXIT.done
}

function viewThread({ id, agent, state, generation, parentId, createdAt }: Thread) {
  return {
    id,
    agent,
    state,
    generation,
    ...(parentId === null ? {} : { parentId }),
    createdAt: new Date(createdAt).toISOString(),
  }
}
