import type { Command } from 'commander'

import { actionsByPrefix } from '../actions/action.ts'
import { viewAction } from '../actions/view.ts'
import { releaseAction } from '../actions/window.ts'
import { HoldfastError } from '../base/errors.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { onlyOne } from '../control/find.ts'
import type { SetExit } from './main.ts'
import { decider, refuseInsideRun } from './person.ts'

export function addActions(program: Command, setExit: SetExit): void {
  const actions = program.command('actions').description('what agents did; `runs statement` lists it')
  actions
    .command('again')
    .description('an identical call may be performed once more; it is asked for afresh when an agent makes it')
    .argument('<action>')
    .option('--why <text>', 'for the record')
    .action(async (id: string, flags: AgainFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => again(context, id, flags), 'welcome'))
    })
}

interface AgainFlags {
  readonly why?: string
}

async function again(context: Context, given: string, { why }: AgainFlags): Promise<number> {
  refuseInsideRun(context)
  const { runtime, output } = context
  const prefix = given.startsWith('act_') ? given : `act_${given}`
  const found = await runtime.store.read(actionsByPrefix, prefix)
  const { id } = onlyOne(found, 'action', given, '`holdfast runs statement` shows those of a run')
  const { by } = decider()
  const released = await runtime.store.apply(releaseAction, id, { by, ...(why === undefined ? {} : { why }) })
  if (released.kind === 'in-doubt')
    throw new HoldfastError('actions/in-doubt', `nobody knows whether ${released.action.id} happened`, {
      remedy: '`holdfast doubts` settles it first',
    })
  if (released.kind !== 'released')
    throw new HoldfastError('actions/not-held', `nothing keeps an identical call of ${id} from being performed`, {
      remedy: 'let the agent make it',
    })
  const { action } = released
  output.result(viewAction(action), () => `${action.id} may be done once more`)
  output.note('tell the agent to do it again: it will be asked for afresh')
  return EXIT.done
}
