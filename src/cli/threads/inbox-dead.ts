import { readdirSync } from 'node:fs'

import type { Command } from 'commander'

import { LIMITS } from '../../base/limits.ts'
import { homePaths } from '../../workers/home.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { countOption } from '../words/count-option.ts'
import { durationOption } from '../words/duration-option.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { describeMessage, messageTable } from './messages.ts'
import { namedThread } from '../around/self.ts'

/** What was accepted and could not be delivered. */
export function addDead(inbox: Command, setExit: SetExit): void {
  const dead = inbox.command('dead').description('what could not be delivered, each with its reason')
  dead
    .command('list')
    .description('dead letters of all threads, or of one, newest first')
    .argument('[thread]', 'a thread, or self')
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action(async (thread: string | undefined, flags: { limit: number }, command: Command) => {
      setExit(await withApi(command, (operator) => list(operator, thread, flags.limit)))
    })
  dead
    .command('show')
    .description('one of them')
    .argument('<message>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => show(operator, id))),
    )
  dead
    .command('retry')
    .description('put one back: into the inbox, or on hold for a recipient that is still to come')
    .argument('<message>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => retry(operator, id))),
    )
  dead
    .command('purge')
    .description('remove one for good, or all that are older')
    .argument('[message]')
    .option('--older-than <duration>', 'all that are dead for longer than this, as 14d', durationOption)
    .action(async (id: string | undefined, flags: PurgeFlags, command: Command) => {
      setExit(await withApi(command, (operator) => purge(operator, id, flags)))
    })
}

async function list(operator: Operator, given: string | undefined, limit: number): Promise<number> {
  const { api, output, clock, local } = operator
  const thread = given === undefined ? undefined : await namedThread(operator, given)
  const { items } = await api.call('dead.list', { limit, ...(thread === undefined ? {} : { thread }) })
  output.result(items, () => (items.length === 0 ? 'no dead letters' : messageTable(items, clock.now())))
  if (local !== undefined) noteCorrupt(local.runtime.home, output.note)
  return EXIT.done
}

function noteCorrupt(home: string, note: (text: string) => void): void {
  const { corrupt } = homePaths(home)
  const records = corruptRecords(corrupt)
  if (records > 0) note(`${records} records of hooks could not be read; they are in ${corrupt}`)
}

function corruptRecords(folder: string): number {
  try {
    return readdirSync(folder).length
  } catch {
    return 0
  }
}

async function show({ api, output }: Operator, given: string): Promise<number> {
  const message = await api.call('dead.show', { message: given })
  output.result(message, () => describeMessage(message))
  return EXIT.done
}

async function retry({ api, output }: Operator, given: string): Promise<number> {
  const { held, ...message } = await api.call('dead.retry', { message: given })
  output.result(message, () =>
    held ? `${message.id} waits for ${message.threadId} to come` : `${message.id} waits again`,
  )
  return EXIT.done
}

interface PurgeFlags {
  readonly olderThan?: number
}

async function purge({ api, output }: Operator, message: string | undefined, flags: PurgeFlags): Promise<number> {
  const answer = await api.call('dead.purge', {
    ...(message === undefined ? {} : { message }),
    ...(flags.olderThan === undefined ? {} : { olderThanMs: flags.olderThan }),
  })
  output.result(answer, () => `${answer.purged} purged`)
  return EXIT.done
}
