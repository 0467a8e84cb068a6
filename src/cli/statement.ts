import { isFinal, readStatement, viewStatement } from '../actions/statement.ts'
import type { ChildStatement, Effect, Statement } from '../actions/statement.ts'
import type { Action } from '../actions/action.ts'
import { HoldfastError } from '../base/errors.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theRun } from '../control/find.ts'
import { jsonText, visible } from './output.ts'
import { facts } from './show-matter.ts'

/** Every effect that a run had on the world, for whoever has to answer for it. */
export async function showStatement({ runtime, output }: Context, given: string): Promise<number> {
  const { id } = await theRun(runtime.store, given)
  const statement = await runtime.store.read(readStatement, id)
  if (statement === undefined) throw new HoldfastError('not-found/run', `there is no run "${given}"`)
  output.result(viewStatement(statement), () => describe(statement))
  return EXIT.done
}

function describe(statement: Statement): string {
  const { run, effects, without, children } = statement
  const head = facts([
    ['run', `${run.id} (${run.state})`],
    ['agent', run.agent],
    ['thread', run.threadId],
    ['command', run.request.kind === 'command' ? run.request.argv.join(' ') : ''],
  ])
  const inDoubt = effects.filter(({ action }) => action.state !== 'done').length
  const count = effects.length - inDoubt
  const open = inDoubt === 0 ? '' : `, and ${inDoubt} of which it is not known`
  const what = `${count} effect${count === 1 ? '' : 's'} on the world${open}; reads are left out`
  return [
    head,
    isFinal(statement) ? `${what}. Nothing is open.` : `${what}. More may follow.`,
    ...effects.map(describeEffect),
    ...(without.length === 0 ? [] : [['without effect:', ...without.map(describeWithout)].join('\n')]),
    ...(children.length === 0 ? [] : [['by runs that it started:', ...children.map(describeChild)].join('\n')]),
  ].join('\n\n')
}

const iso = (instant: number | null) => (instant === null ? '' : new Date(instant).toISOString())

const STATES: Readonly<Record<string, string>> = {
  done: 'done',
  in_doubt: 'IN DOUBT: it may or may not have happened',
  started: 'UNDER WAY',
}

function describeEffect({ action, approval }: Effect): string {
  const { tool, input, signature, state, decision, settledBy, givenUp, error, startedAt, settledAt } = action
  const allowed = decision === null ? '' : `${decision.by} (${decision.via})`
  return `${visible(tool)} ${jsonText(input)}\n${facts([
    ['  state', STATES[state] ?? state],
    ['  action', action.id],
    ['  signature', signature],
    ['  allowed by', approval === undefined ? allowed : `${allowed} at ${iso(approval.decidedAt)}, ${approval.id}`],
    ['  started', iso(startedAt)],
    ['  settled', settledAt === null ? '' : `${iso(settledAt)} by ${settledBy ?? '?'}`],
    ['  given up by', givenUp ?? ''],
    ['  seen', error ?? ''],
  ])}`
}

function describeWithout({ id, tool, input, state, repeatOf, error }: Action): string {
  const how = repeatOf === null ? `${state}${error === null ? '' : `: ${error}`}` : `answered from ${repeatOf}`
  return visible(`  ${tool} ${jsonText(input)} (${id}): ${how}`).replaceAll('\n', '\\n')
}

const describeChild = ({ run, done, inDoubt }: ChildStatement) =>
  visible(`  ${run.id} (${run.agent}, ${run.state}): ${done} done, ${inDoubt} in doubt; it has a statement of its own`)
