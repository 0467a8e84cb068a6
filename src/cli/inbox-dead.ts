import { readdirSync } from 'node:fs'

import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { attachmentOf } from '../threads/delivery.ts'
import { purgeDead, retryDead, undelivered } from '../threads/dead-letter.ts'
import { viewMessage } from '../threads/view.ts'
import { homePaths } from '../workers/home.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { countOption } from './count-option.ts'
import { durationOption } from './duration-option.ts'
import { EXIT } from './exit-code.ts'
import type { SetExit } from './main.ts'
import { describeMessage, messageTable, notADeadLetter, theMessage } from './messages.ts'
import { threadOrSelf } from './self.ts'

/** What was accepted and could not be delivered. */
export function addDead(inbox: Command, setExit: SetExit): void {
  const dead = inbox.command('dead').description('what could not be delivered, each with its reason')
  dead
    .command('list')
    .description('dead letters of all threads, or of one, newest first')
    .argument('[thread]', 'a thread, or self')
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action(async (thread: string | undefined, flags: { limit: number }, command: Command) => {
      setExit(await withRuntime(command, (context) => list(context, thread, flags.limit), 'welcome'))
    })
  dead
    .command('show')
    .description('one of them')
    .argument('<message>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, id), 'welcome')),
    )
  dead
    .command('retry')
    .description('put one back: into the inbox, or on hold for a recipient that is still to come')
    .argument('<message>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => retry(context, id), 'welcome')),
    )
  dead
    .command('purge')
    .description('remove one for good, or all that are older')
    .argument('[message]')
    .option('--older-than <duration>', 'all that are dead for longer than this, as 14d', durationOption)
    .action(async (id: string | undefined, flags: PurgeFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => purge(context, id, flags), 'welcome'))
    })
}

async function list(context: Context, given: string | undefined, limit: number): Promise<number> {
  const { runtime, output } = context
  const threadId = given === undefined ? undefined : (await threadOrSelf(context, given)).id
  const filter = { state: 'dead', limit, ...(threadId === undefined ? {} : { threadId }) } as const
  const letters = await runtime.store.read(undelivered, filter)
  output.result(letters.map(viewMessage), () =>
    letters.length === 0 ? 'no dead letters' : messageTable(letters, runtime.clock.now()),
  )
  const corrupt = corruptRecords(runtime.home)
  if (corrupt > 0)
    output.note(`${corrupt} records of hooks could not be read; they are in ${homePaths(runtime.home).corrupt}`)
  return EXIT.done
}

function corruptRecords(home: string): number {
  try {
    return readdirSync(homePaths(home).corrupt).length
  } catch {
    return 0
  }
}

async function show({ runtime, output }: Context, given: string): Promise<number> {
  const message = await theMessage(runtime.store, given)
  if (message.state !== 'dead') throw notADeadLetter(message)
  const whole = (await runtime.store.read(attachmentOf, message.id))?.content
  output.result({ ...viewMessage(message), ...(whole === undefined ? {} : { attachment: whole }) }, () =>
    describeMessage(message, whole),
  )
  return EXIT.done
}

async function retry({ runtime, output }: Context, given: string): Promise<number> {
  const found = await theMessage(runtime.store, given)
  const answer = await runtime.store.apply(retryDead, found.id)
  if (answer.kind !== 'retried') throw notADeadLetter(answer.kind === 'unknown' ? found : answer.message)
  const { message } = answer
  output.result(viewMessage(message), () =>
    message.nextAttemptAt === null
      ? `${message.id} waits again`
      : `${message.id} waits for ${message.threadId} to come`,
  )
  return EXIT.done
}

interface PurgeFlags {
  readonly olderThan?: number
}

async function purge({ runtime, output }: Context, given: string | undefined, flags: PurgeFlags): Promise<number> {
  if ((given === undefined) === (flags.olderThan === undefined)) {
    throw new HoldfastError('usage/purge', 'say which: one message, or those older than some time', {
      remedy: 'as in `holdfast inbox dead purge --older-than 14d`',
    })
  }
  const message = given === undefined ? undefined : await theMessage(runtime.store, given)
  if (message !== undefined && message.state !== 'dead') throw notADeadLetter(message)
  const which = message === undefined ? { olderThanMs: flags.olderThan ?? 0 } : { id: message.id }
  const purged = await runtime.store.apply(purgeDead, which)
  output.result({ purged }, () => `${purged} purged`)
  return EXIT.done
}
