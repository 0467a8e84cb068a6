import { Option } from 'commander'
import type { Command } from 'commander'

import { LIMITS } from '../base/limits.ts'
import { attachmentOf } from '../threads/delivery.ts'
import { wordsOf } from '../threads/message-text.ts'
import { MESSAGE_STATES, messagesIn } from '../threads/message.ts'
import type { MessageState } from '../threads/message.ts'
import { viewMessage } from '../threads/view.ts'
import { giveBackLost } from '../workers/tend-inbox.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { countOption } from './count-option.ts'
import { EXIT } from './exit-code.ts'
import { addDead } from './inbox-dead.ts'
import { addDeliveries } from './inbox-drain.ts'
import type { SetExit } from './main.ts'
import { describeMessage, messageTable, theMessage } from './messages.ts'
import { visible } from './output.ts'
import { threadOrSelf } from './self.ts'

export function addInbox(program: Command, setExit: SetExit): void {
  const inbox = program
    .command('inbox')
    .description("what waits in a thread's inbox; `holdfast inbox THREAD` lists it and takes nothing")
  inbox
    .command('list', { isDefault: true })
    .description('what waits, or what became of it; takes nothing')
    .argument('[thread]', 'a thread, or self', 'self')
    .addOption(new Option('--state <state...>', 'messages in these states').choices(MESSAGE_STATES))
    .option('--limit <count>', 'how many, the newest', countOption, LIMITS.page)
    .action(async (thread: string, flags: ListFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => list(context, thread, flags), 'welcome'))
    })
  addDeliveries(inbox, setExit)
  inbox
    .command('show')
    .description('one message, with the whole text of one that is too long for an inbox')
    .argument('<message>')
    .option('--attachment', 'only that whole text, as it is')
    .action(async (id: string, flags: ShowFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => show(context, id, flags), 'welcome'))
    })
  addDead(inbox, setExit)
}

interface ListFlags {
  readonly state?: readonly MessageState[]
  readonly limit: number
}

async function list(context: Context, given: string, flags: ListFlags): Promise<number> {
  const { runtime, output } = context
  const { id } = await threadOrSelf(context, given)
  await giveBackLost(runtime.store)
  const messages = await runtime.store.read(messagesIn, flags.state ?? ['pending', 'leased'], flags.limit, id)
  output.result(messages.map(viewMessage), () =>
    messages.length === 0 ? 'no messages' : messageTable(messages, runtime.clock.now()),
  )
  return EXIT.done
}

interface ShowFlags {
  readonly attachment?: boolean
}

async function show({ runtime, output }: Context, given: string, flags: ShowFlags): Promise<number> {
  const message = await theMessage(runtime.store, given)
  const whole = (await runtime.store.read(attachmentOf, message.id))?.content
  if (flags.attachment === true) {
    const words = whole ?? wordsOf(message.body)
    output.result(words, () => visible(words))
    return EXIT.done
  }
  output.result({ ...viewMessage(message), ...(whole === undefined ? {} : { attachment: whole }) }, () =>
    describeMessage(message, whole),
  )
  return EXIT.done
}
