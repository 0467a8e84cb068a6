import { Option } from 'commander'
import type { Command } from 'commander'

import { LIMITS } from '../../base/limits.ts'
import { wordsOf } from '../../threads/message-text.ts'
import { MESSAGE_STATES } from '../../threads/message.ts'
import type { MessageState } from '../../threads/message.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { countOption } from '../words/count-option.ts'
import { EXIT } from '../words/exit-code.ts'
import { addDead } from './inbox-dead.ts'
import { addDeliveries } from './inbox-drain.ts'
import type { SetExit } from '../main.ts'
import { describeMessage, messageTable } from './messages.ts'
import { visible } from '../words/output.ts'
import { namedThread } from '../around/self.ts'

export function addInbox(inbox: Command, setExit: SetExit): void {
  inbox
    .command('list', { isDefault: true })
    .description('what waits, or what became of it; takes nothing')
    .argument('[thread]', 'a thread, or self', 'self')
    .addOption(new Option('--state <state...>', 'messages in these states').choices(MESSAGE_STATES))
    .option('--limit <count>', 'how many, the newest', countOption, LIMITS.page)
    .action(async (thread: string, flags: ListFlags, command: Command) => {
      setExit(await withApi(command, (operator) => list(operator, thread, flags)))
    })
  addDeliveries(inbox, setExit)
  inbox
    .command('show')
    .description('one message, with the whole text of one that is too long for an inbox')
    .argument('<message>')
    .option('--attachment', 'only that whole text, as it is')
    .action(async (id: string, flags: ShowFlags, command: Command) => {
      setExit(await withApi(command, (operator) => show(operator, id, flags)))
    })
  addDead(inbox, setExit)
}

interface ListFlags {
  readonly state?: readonly MessageState[]
  readonly limit: number
}

/** Oldest first: the newest is where the eye ends up. */
async function list(operator: Operator, given: string, { state, limit }: ListFlags): Promise<number> {
  const { api, output, clock, local } = operator
  const thread = await namedThread(operator, given)
  if (local !== undefined) {
    const { giveBackLost } = await import('../../workers/tend-inbox.ts')
    await giveBackLost(local.runtime.store)
  }
  const { items } = await api.call('inbox.list', {
    thread,
    limit,
    ...(state === undefined ? {} : { state: [...state] }),
  })
  const messages = items.toReversed()
  output.result(messages, () => (messages.length === 0 ? 'no messages' : messageTable(messages, clock.now())))
  return EXIT.done
}

interface ShowFlags {
  readonly attachment?: boolean
}

async function show({ api, output }: Operator, given: string, flags: ShowFlags): Promise<number> {
  const message = await api.call('messages.show', { message: given })
  if (flags.attachment === true) {
    const words = message.attachment ?? wordsOf(message.body)
    output.result(words, () => visible(words))
    return EXIT.done
  }
  output.result(message, () => describeMessage(message))
  return EXIT.done
}
