import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { readWholeThread, viewWholeThread } from '../runs/thread-view.ts'
import { listThreads } from '../threads/thread.ts'
import { viewThread } from '../threads/view.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { describeTurns } from './conversation.ts'
import { EXIT } from './exit-code.ts'
import { theThread } from './find.ts'
import type { SetExit } from './main.ts'
import { ago, table, visibleLine } from './output.ts'
import { commandLine } from './runs.ts'

export function addThreads(program: Command, setExit: SetExit): void {
  const threads = program.command('threads').description('the durable conversations that runs belong to')
  threads
    .command('list')
    .description('the newest threads first')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, list, 'welcome')))
  threads
    .command('show')
    .description('one thread with its runs')
    .argument('<thread>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, id), 'welcome')),
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
  const { id } = await theThread(runtime.store, given)
  const whole = await runtime.store.read(readWholeThread, id, LIMITS.threadShown)
  if (whole === undefined) throw new HoldfastError('not-found/thread', `there is no thread "${given}"`)
  const { thread, runs, entries, actions } = whole
  const now = runtime.clock.now()
  output.result(viewWholeThread(whole), () =>
    [
      `thread:  ${visibleLine(thread.id)}`,
      `agent:   ${visibleLine(thread.agent)}`,
      ...(thread.parentId === null ? [] : [`parent:  ${visibleLine(thread.parentId)}`]),
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
