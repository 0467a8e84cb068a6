import type { Command } from 'commander'

import { doubtfulMatters, viewDoubt } from '../actions/desk.ts'
import type { Matter } from '../actions/desk.ts'
import { resolveDoubt } from '../actions/doubt.ts'
import type { Resolution, Resolved } from '../actions/doubt.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { brief } from './approvals.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theDoubt } from '../control/find.ts'
import type { SetExit } from './main.ts'
import { ago, table } from './output.ts'
import { decider, noteIfNobodyWorks, refuseInsideRun } from './person.ts'
import { describeDoubt } from './show-matter.ts'

interface ResolveFlags {
  readonly happened?: boolean
  readonly result?: string
  readonly didNotHappen?: boolean
  readonly runAgain?: boolean
  readonly giveUp?: boolean
  readonly why?: string
}

export function addDoubts(program: Command, setExit: SetExit): void {
  const doubts = program.command('doubts').description('writes that were cut off: they may or may not have happened')
  doubts
    .command('list', { isDefault: true })
    .description('what nobody knows about, oldest first')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, list, 'welcome')))
  doubts
    .command('show')
    .description('what was intended, when it started, what was seen of it')
    .argument('<doubt>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, id), 'welcome')),
    )
  doubts
    .command('resolve')
    .description('say what became of it; its run goes on at once')
    .argument('<doubt>')
    .option('--happened', 'it happened')
    .option('--result <json>', 'with --happened: what it came to, for the agent')
    .option('--did-not-happen', 'it did not happen, and the agent is told so')
    .option('--run-again', 'with --did-not-happen: do it now')
    .option('--give-up', 'nobody will ever know: the agent is told that and goes on')
    .option('--why <text>', 'how you know, for the record')
    .action(async (id: string, flags: ResolveFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => resolve(context, id, flags), 'welcome'))
    })
}

async function list({ runtime, output }: Context): Promise<number> {
  const matters = await runtime.store.read(doubtfulMatters, LIMITS.page)
  const now = runtime.clock.now()
  output.result(matters.map(viewDoubt), () =>
    matters.length === 0
      ? 'nothing is in doubt'
      : table(
          ['DOUBT', 'AGENT', 'TOOL', 'STARTED', 'INPUT'],
          matters.map(({ action, run }) => {
            const started = ago(action.startedAt ?? action.createdAt, now)
            return [action.id, run.agent, action.tool, started, brief(action.input)]
          }),
        ),
  )
  return EXIT.done
}

async function show({ runtime, output }: Context, given: string): Promise<number> {
  const matter = await theDoubt(runtime.store, given)
  output.result(viewDoubt(matter), () => describeDoubt(matter))
  return EXIT.done
}

async function resolve(context: Context, given: string, flags: ResolveFlags): Promise<number> {
  const resolution = resolutionOf(flags)
  refuseInsideRun(context)
  const matter = await theDoubt(context.runtime.store, given)
  const { id } = matter.action
  const action = settled(id, await context.runtime.store.apply(resolveDoubt, id, resolution))
  const state = action.givenUp === null ? action.state : 'in_doubt, given up'
  context.output.result(viewDoubt({ ...matter, action }), () => `${id} ${state}`)
  await noteIfNobodyWorks(context)
  return EXIT.done
}

function settled(id: string, resolved: Resolved): Matter['action'] {
  if (resolved.kind === 'resolved') return resolved.action
  if (resolved.kind === 'run-ended')
    throw new HoldfastError('doubts/run-ended', `the run of ${id} has ended: nobody is there to do it again`, {
      remedy: 'say --happened, --did-not-happen or --give-up, for the record',
    })
  const how = resolved.kind === 'unknown' ? 'is gone' : `is not in doubt any more: ${stateOf(resolved.action)}`
  throw new HoldfastError('doubts/not-in-doubt', `${id} ${how}`, { remedy: 'nothing was changed' })
}

const stateOf = ({ state, settledBy, givenUp }: Matter['action']) => {
  if (givenUp !== null) return `given up by ${givenUp}`
  return settledBy === null ? state : `${state}, settled by ${settledBy}`
}

/** One of the three, and what belongs to it. */
function resolutionOf({ happened, result, didNotHappen, runAgain, giveUp, why }: ResolveFlags): Resolution {
  const said = [happened, didNotHappen, giveUp].filter((flag) => flag === true).length
  if (said !== 1) throw wrong('it is not clear what became of it', 'say --happened, --did-not-happen or --give-up')
  if (result !== undefined && happened !== true) throw wrong('--result is for --happened', 'leave it out')
  if (runAgain === true && didNotHappen !== true) throw wrong('--run-again is for --did-not-happen', 'say both')
  const who = { by: decider().by, ...(why === undefined ? {} : { why }) }
  if (giveUp === true) return { kind: 'give-up', ...who }
  if (happened !== true) return { kind: runAgain === true ? 'run-again' : 'did-not-happen', ...who }
  return { kind: 'happened', ...who, ...(result === undefined ? {} : { result: parsed(result) }) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new HoldfastError('usage/result', '--result is not JSON', {
      remedy: `as in --result '{"id": 7}' or --result '"paid"'`,
      cause,
    })
  }
}

const wrong = (message: string, remedy: string) => new HoldfastError('usage/resolve', message, { remedy })
