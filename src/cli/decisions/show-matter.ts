import type { Operator } from '../around/context.ts'
import { jsonText, visible, visibleLine } from '../words/output.ts'
import type { ApprovalView, DoubtView, WaitsFor } from '../words/views.ts'

/** Facts, one a line, whatever is in them: 300 blank lines push nothing out of sight. What is empty is left out. */
export const facts = (lines: readonly (readonly [string, string])[]): string =>
  lines
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${`${name}:`.padEnd(14)}${visibleLine(value)}`)
    .join('\n')

/**
 * What is decided on, whole: the input is written as JSON, so that each of its line ends is two visible characters, and
 * below it the exact bytes that the decision is bound to.
 */
export function describeAsked(approval: ApprovalView): string {
  const lines = facts([
    ['approval', approval.id],
    ['state', approval.state],
    ['agent', approval.agent],
    ['run', approval.runId],
    ['thread', approval.threadId],
    ['tool', `${approval.tool} (${approval.effect})`],
    ['asked by', approval.askedBy],
    ['asked', approval.askedAt],
    ['expires', approval.expiresAt],
    ['decided', decided(approval)],
    ['note', approval.note ?? ''],
    ['digest', approval.digest],
    ['hidden', hiddenWords(approval.hidden)],
  ])
  const exact = `exact bytes (${Buffer.byteLength(approval.shown)}):\n  ${visibleLine(approval.shown)}`
  return [lines, `input:\n${indented(inputText(approval.input))}`, exact, ...modelWords(approval.modelSaid)].join(
    '\n\n',
  )
}

/** Nothing is cut off, and nothing is raw. */
const inputText = (input: unknown) => jsonText(input, 2)

const hiddenWords = (hidden = 0): string =>
  hidden === 0
    ? ''
    : `${hidden} secret ${hidden === 1 ? 'value is' : 'values are'} not shown; the decision covers the exact bytes`

const decided = ({ decided: answer }: ApprovalView): string =>
  answer === undefined ? '' : `by ${answer.by ?? '?'} through ${answer.via ?? '?'} at ${answer.at}`

/** Apart from the facts, and named for what it is. */
const modelWords = (said = ''): string[] =>
  said === '' ? [] : [`the model's own words about it (not checked by anybody):\n${indented(said, '  | ')}`]

const indented = (text: string, margin = '  ') =>
  visible(text)
    .split('\n')
    .map((line) => `${margin}${line}`)
    .join('\n')

export function describeDoubt(doubt: DoubtView): string {
  const { allowedBy } = doubt
  const lines = facts([
    ['doubt', doubt.id],
    ['state', doubt.state.replace('_', ' ')],
    ['agent', doubt.agent],
    ['run', `${doubt.runId} (${doubt.runState})`],
    ['thread', doubt.threadId],
    ['tool', doubt.tool],
    ['signature', doubt.signature],
    ['started', doubt.startedAt ?? ''],
    ['tries', String(doubt.tries)],
    ['allowed by', allowedBy === undefined ? '' : `${allowedBy.by} (${allowedBy.via})`],
    ['settled by', doubt.settledBy ?? ''],
    ['given up by', doubt.givenUp ?? ''],
  ])
  const seen = doubt.seen === undefined ? [] : [`what was seen of it:\n${indented(doubt.seen)}`]
  return [lines, `input:\n${indented(inputText(doubt.input))}`, ...seen, ...modelWords(doubt.modelSaid)].join('\n\n')
}

/** What a run waits for, and how to answer. */
export async function describeAwaited({ api }: Operator, { approvals, doubts }: WaitsFor): Promise<string> {
  const asked = approvals.map(async (id) => {
    const { tool } = await api.call('approvals.show', { approval: id })
    return `${tool} waits for a yes or a no: \`holdfast approvals show ${id}\`, then \`approvals approve\`, \`skip\` or \`deny\``
  })
  const unknown = doubts.map(async (id) => {
    const { tool } = await api.call('doubts.show', { doubt: id })
    return `${tool} may or may not have happened: \`holdfast doubts show ${id}\`, then \`doubts resolve ${id} --happened\`, \`--did-not-happen\` or \`--give-up\``
  })
  const lines = await Promise.all([...asked, ...unknown])
  return visible(['it waits for a person', ...lines.map((line) => `  ${line}`)].join('\n'))
}
