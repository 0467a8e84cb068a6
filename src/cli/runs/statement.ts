import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { jsonText, visible } from '../words/output.ts'
import { facts } from '../decisions/show-matter.ts'
import type { StatementView } from '../words/views.ts'
import { describeFiles } from './workspace-words.ts'

/** Every effect that a run had on the world, for whoever has to answer for it. */
export async function showStatement({ api, output }: Operator, run: string): Promise<number> {
  const statement = await api.call('runs.statement', { run })
  output.result(statement, () => describe(statement))
  return EXIT.done
}

function describe(statement: StatementView) {
  const { runId, state, agent, threadId, command, effects, withoutEffect, children, final } = statement
  const head = facts([
    ['run', `${runId} (${state})`],
    ['agent', agent],
    ['thread', threadId],
    ['command', command?.join(' ') ?? ''],
  ])
  const inDoubt = effects.filter((effect) => effect.state !== 'done').length
  const count = effects.length - inDoubt
  const open = inDoubt === 0 ? '' : `, and ${inDoubt} of which it is not known`
  const what = `${count} effect${count === 1 ? '' : 's'} on the world${open}; reads are left out`
  return [
    head,
    final ? `${what}. Nothing is open.` : `${what}. More may follow.`,
    ...describeDiscarded(statement),
    ...effects.map(describeEffect),
    ...(withoutEffect.length === 0 ? [] : [['without effect:', ...withoutEffect.map(describeWithout)].join('\n')]),
    ...(children.length === 0 ? [] : [['by runs that it started:', ...children.map(describeChild)].join('\n')]),
  ].join('\n\n')
}

/** Git takes back files and nothing else: what was done besides is said right beside it. */
function describeDiscarded({ workspace, effects, children }: StatementView): string[] {
  if (workspace === undefined) return []
  const files = facts([['files', describeFiles(workspace)]])
  const isDiscarded = workspace.state === 'discarded' || workspace.state === 'discarding'
  if (!isDiscarded || effects.length + children.length === 0) return [files]
  return [`${files}\nThe files were discarded. What follows is outside of them, and nobody took it back:`]
}

const STATES: Readonly<Record<string, string>> = {
  done: 'done',
  in_doubt: 'IN DOUBT: it may or may not have happened',
  started: 'UNDER WAY',
}

function describeEffect(effect: StatementView['effects'][number]): string {
  const { actionId, tool, input, signature, state, allowedBy, approvalId, allowedAt, settledBy } = effect
  const { givenUp, error, startedAt = '', settledAt } = effect
  const allowed = allowedBy === undefined ? '' : `${allowedBy.by} (${allowedBy.via})`
  return `${visible(tool)}${given(input)}\n${facts([
    ['  state', STATES[state] ?? state],
    ['  action', actionId],
    ['  signature', signature],
    ['  allowed by', approvalId === undefined ? allowed : `${allowed} at ${allowedAt ?? ''}, ${approvalId}`],
    ['  started', startedAt],
    ['  settled', settledAt === undefined || settledBy === undefined ? '' : `${settledAt} by ${settledBy}`],
    ['  given up by', givenUp ?? ''],
    ['  seen', error ?? ''],
  ])}`
}

/** A step of a function was given nothing. */
const given = (input: unknown) => (input === null ? '' : ` ${jsonText(input)}`)

function describeWithout({ actionId, tool, input, state, repeatOf, why }: StatementView['withoutEffect'][number]) {
  const how = repeatOf === undefined ? `${state}${why === undefined ? '' : `: ${why}`}` : `answered from ${repeatOf}`
  return visible(`  ${tool}${given(input)} (${actionId}): ${how}`).replaceAll('\n', '\\n')
}

const describeChild = ({ runId, agent, state, effects, inDoubt }: StatementView['children'][number]) =>
  visible(`  ${runId} (${agent}, ${state}): ${effects} done, ${inDoubt} in doubt; it has a statement of its own`)
