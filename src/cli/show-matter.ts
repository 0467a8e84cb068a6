import type { AskedMatter, Awaited, Matter } from '../actions/desk.ts'
import { jsonText, visible } from './output.ts'

const iso = (instant: number | null) => (instant === null ? '' : new Date(instant).toISOString())

/** Facts, one a line; what is empty is left out. */
export const facts = (lines: readonly (readonly [string, string])[]): string =>
  lines
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${`${name}:`.padEnd(14)}${oneLine(value)}`)
    .join('\n')

/** In one line, whatever is in it: 300 blank lines push nothing out of sight. */
const oneLine = (text: string) => visible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

/**
 * What is decided on, whole: the input is written as JSON, so that each of its line ends is two visible characters, and
 * below it the exact bytes that the decision is bound to.
 */
export function describeAsked({ approval, action, run, said }: AskedMatter): string {
  const lines = facts([
    ['approval', approval.id],
    ['state', approval.state],
    ['agent', run.agent],
    ['run', run.id],
    ['thread', run.threadId],
    ['tool', `${action.tool} (${action.effect})`],
    ['asked by', approval.askedBy],
    ['asked', iso(approval.askedAt)],
    ['expires', iso(approval.expiresAt)],
    ['decided', decided(approval)],
    ['note', approval.note ?? ''],
    ['digest', approval.digest],
  ])
  const exact = `exact bytes (${Buffer.byteLength(approval.shown)}):\n  ${oneLine(approval.shown)}`
  return [lines, `input:\n${indented(inputText(action.input))}`, exact, ...modelWords(said)].join('\n\n')
}

/** Nothing is cut off, and nothing is raw. */
const inputText = (input: unknown) => jsonText(input, 2)

function decided({ decidedBy, decidedVia, decidedAt }: AskedMatter['approval']): string {
  return decidedAt === null ? '' : `by ${decidedBy ?? '?'} through ${decidedVia ?? '?'} at ${iso(decidedAt)}`
}

/** Apart from the facts, and named for what it is. */
const modelWords = (said: string): string[] =>
  said === '' ? [] : [`the model's own words about it (not checked by anybody):\n${indented(said, '  | ')}`]

const indented = (text: string, margin = '  ') =>
  visible(text)
    .split('\n')
    .map((line) => `${margin}${line}`)
    .join('\n')

export function describeDoubt({ action, run, said }: Matter): string {
  const lines = facts([
    ['doubt', action.id],
    ['state', action.state.replace('_', ' ')],
    ['agent', run.agent],
    ['run', `${run.id} (${run.state})`],
    ['thread', run.threadId],
    ['tool', action.tool],
    ['signature', action.signature],
    ['started', iso(action.startedAt)],
    ['tries', String(action.tries)],
    ['allowed by', action.decision === null ? '' : `${action.decision.by} (${action.decision.via})`],
    ['settled by', action.settledBy === 'nobody' ? '' : (action.settledBy ?? '')],
    ['given up by', action.givenUp ?? ''],
  ])
  const seen = action.error === null ? [] : [`what was seen of it:\n${indented(action.error)}`]
  return [lines, `input:\n${indented(inputText(action.input))}`, ...seen, ...modelWords(said)].join('\n\n')
}

/** What a run waits for, and how to answer. */
export function describeAwaited({ approvals, doubts }: Awaited): string {
  const asked = approvals.map(({ id, shown }) => {
    const { tool } = JSON.parse(shown) as { readonly tool: string }
    return `${tool} waits for a yes or a no: \`holdfast approvals show ${id}\`, then \`approvals approve\`, \`skip\` or \`deny\``
  })
  const unknown = doubts.map(
    ({ id, tool }) =>
      `${tool} may or may not have happened: \`holdfast doubts show ${id}\`, then \`doubts resolve ${id} --happened\`, \`--did-not-happen\` or \`--give-up\``,
  )
  return visible(['it waits for a person', ...[...asked, ...unknown].map((line) => `  ${line}`)].join('\n'))
}
