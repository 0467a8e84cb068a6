import { visible, visibleLine } from '../words/output.ts'
import type { ActionView, StepView } from '../words/views.ts'

const MOST_CHARACTERS = 500
/** What came of a call matters more than what it was given. */
const MOST_OF_INPUT = 200

/** What was said and done, in order, for people: the exact bytes are in `--json`. */
export function describeTurns(steps: readonly StepView[], actions: readonly ActionView[]): string[] {
  const lines = [...linesOf(steps, actions)]
  return lines.length === 0 ? [] : [lines.join('\n')]
}

/** What a function did itself was asked for by no model: it stands where it began. */
function* linesOf(steps: readonly StepView[], actions: readonly ActionView[]): Generator<string> {
  const own = actions.filter(({ step }) => step === undefined)
  let told = 0
  for (const step of steps) {
    for (; told < own.length && beganAt(own[told]!) < step.at; told += 1) yield describeAction(own[told]!)
    yield describeStep(step)
    yield* actionsAfter(step, actions)
  }
  yield* own.slice(told).map(describeAction)
}

const beganAt = ({ startedAt, settledAt }: ActionView): string => startedAt ?? settledAt ?? ''

const MARKS = { user: '>', assistant: '<', summary: '=' } as const

function describeStep(step: StepView): string {
  const text = typeof step['text'] === 'string' ? step['text'] : ''
  const calls = Array.isArray(step['toolCalls']) ? step['toolCalls'].length : 0
  return `${MARKS[step.kind]} ${brief(text === '' ? (calls === 0 ? '(nothing)' : '(tool calls)') : text)}`
}

const actionsAfter = ({ seq }: StepView, actions: readonly ActionView[]) =>
  actions.filter(({ step }) => step === seq).map(describeAction)

function describeAction(action: ActionView): string {
  const { tool, input, error, result } = action
  const became = whatBecame(action)
  const detail = error ?? (result === undefined ? '' : JSON.stringify(result))
  const given = input === null ? '' : ` ${brief(JSON.stringify(input), MOST_OF_INPUT)}`
  const call = `${visibleLine(tool)}${given}`
  return `  · ${call}: ${visibleLine(became)}${detail === '' ? '' : ` (${brief(detail)})`}`
}

// Who settles an action when nothing went wrong, or says so in its error.
const USUAL: readonly (string | undefined)[] = [undefined, 'its tool', 'its function', 'nobody', 'limit', 'repeat']

/** Evidence is named: "done, settled by its probe". */
function whatBecame({ state, repeatOf, settledBy }: ActionView): string {
  if (repeatOf !== undefined) return 'answered from the first'
  return `${state.replace('_', ' ')}${USUAL.includes(settledBy) ? '' : `, settled by ${settledBy}`}`
}

function brief(text: string, most = MOST_CHARACTERS): string {
  const shown = text.length <= most ? text : `${text.slice(0, most)}…`
  return visible(shown).replaceAll('\n', '\n  ')
}
