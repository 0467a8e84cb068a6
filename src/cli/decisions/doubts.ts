import type { Command } from 'commander'

import type { Ask } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { brief } from './approvals.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { jsonOption } from '../words/json-option.ts'
import type { SetExit } from '../main.ts'
import { ago, table } from '../words/output.ts'
import { noteIfNobodyWorks, refuseInsideRun } from '../around/person.ts'
import { describeDoubt } from './show-matter.ts'

interface ResolveFlags {
  readonly happened?: boolean
  readonly result?: string
  readonly didNotHappen?: boolean
  readonly runAgain?: boolean
  readonly deadHost?: string
  readonly giveUp?: boolean
  readonly why?: string
}

export function addDoubts(doubts: Command, setExit: SetExit): void {
  doubts
    .command('list', { isDefault: true })
    .description('what nobody knows about, oldest first')
    .action(async (_: unknown, command: Command) => setExit(await withApi(command, list)))
  doubts
    .command('show')
    .description('what was intended, when it started, what was seen of it')
    .argument('<doubt>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => show(operator, id))),
    )
  doubts
    .command('resolve')
    .description('say what became of it; its run goes on at once')
    .argument('<doubt>')
    .option('--happened', 'it happened')
    .option('--result <json>', 'with --happened: what it came to, for the agent')
    .option('--did-not-happen', 'it did not happen, and the agent is told so')
    .option('--run-again', 'with --did-not-happen: do it now')
    .option(
      '--dead-host <host>',
      'with --run-again: who had begun it on that machine is dead; you have made sure of that',
    )
    .option('--give-up', 'nobody will ever know: the agent is told that and goes on')
    .option('--why <text>', 'how you know, for the record')
    .action(async (id: string, flags: ResolveFlags, command: Command) => {
      setExit(await withApi(command, (operator) => resolve(operator, id, flags)))
    })
}

async function list({ api, output, clock }: Operator): Promise<number> {
  const { items: doubts } = await api.call('doubts.list', { limit: LIMITS.page })
  const now = clock.now()
  output.result(doubts, () =>
    table(
      ['DOUBT', 'AGENT', 'TOOL', 'STARTED', 'INPUT'],
      doubts.map(({ id, agent, tool, input, startedAt, createdAt }) => {
        return [id, agent, tool, ago(Date.parse(startedAt ?? createdAt), now), brief(input)]
      }),
      'nothing is in doubt',
    ),
  )
  return EXIT.done
}

async function show({ api, output }: Operator, given: string): Promise<number> {
  const doubt = await api.call('doubts.show', { doubt: given })
  output.result(doubt, () => describeDoubt(doubt))
  return EXIT.done
}

async function resolve(operator: Operator, given: string, flags: ResolveFlags): Promise<number> {
  const said = resolutionOf(flags)
  refuseInsideRun(operator)
  const doubt = await operator.api.call('doubts.resolve', { doubt: given, ...said })
  const state = doubt.givenUp === undefined ? doubt.state : 'in_doubt, given up'
  operator.output.result(doubt, () => `${doubt.id} ${state}`)
  await noteIfNobodyWorks(operator)
  return EXIT.done
}

type Said = Omit<Ask<'doubts.resolve'>, 'doubt'>

/** One of the three, and what belongs to it. */
function resolutionOf({ happened, result, didNotHappen, runAgain, deadHost, giveUp, why }: ResolveFlags): Said {
  const said = [happened, didNotHappen, giveUp].filter((flag) => flag === true).length
  if (said !== 1) throw wrong('it is not clear what became of it', 'say --happened, --did-not-happen or --give-up')
  if (result !== undefined && happened !== true) throw wrong('--result is for --happened', 'leave it out')
  if (runAgain === true && didNotHappen !== true) throw wrong('--run-again is for --did-not-happen', 'say both')
  if (deadHost !== undefined && runAgain !== true) throw wrong('--dead-host is for --run-again', 'leave it out')
  const known = why === undefined ? {} : { why }
  if (giveUp === true) return { resolution: 'give-up', ...known }
  if (runAgain === true) return { resolution: 'run-again', ...known, ...(deadHost === undefined ? {} : { deadHost }) }
  if (happened !== true) return { resolution: 'did-not-happen', ...known }
  return {
    resolution: 'happened',
    ...known,
    ...(result === undefined ? {} : { result: jsonOption('--result', result, '{"id": 7}') }),
  }
}

const wrong = (message: string, remedy: string) => new HoldfastError('usage/resolve', message, { remedy })
