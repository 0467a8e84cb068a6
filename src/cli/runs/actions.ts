import type { Command } from 'commander'

import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { refuseInsideRun } from '../around/person.ts'

export function addActions(actions: Command, setExit: SetExit): void {
  actions
    .command('again')
    .description('an identical call may be performed once more; it is asked for afresh when an agent makes it')
    .argument('<action>')
    .option('--why <text>', 'for the record')
    .action(async (id: string, flags: AgainFlags, command: Command) => {
      setExit(await withApi(command, (operator) => again(operator, id, flags)))
    })
}

interface AgainFlags {
  readonly why?: string
}

async function again(operator: Operator, given: string, { why }: AgainFlags): Promise<number> {
  refuseInsideRun(operator)
  const { api, output } = operator
  const action = await api.call('actions.again', { action: given, ...(why === undefined ? {} : { why }) })
  output.result(action, () => `${action.id} may be done once more`)
  output.note('tell the agent to do it again: it will be asked for afresh')
  return EXIT.done
}
