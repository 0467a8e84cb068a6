import { visible, visibleLine } from './output.ts'
import type { ActionView, StepView } from './views.ts'

const MOST_CHARACTERS = 500
/** What came of a call matters more than what it was given. */
const MOST_OF_INPUT = 200

/** What was said and done, in order, for people: the exact bytes are in `--json`. */
export function describeTurns(steps: readonly StepView[], actions: readonly ActionView[]): string[] {
  // Those of a function: no model asked for them.
  if (steps.length === 0) return actions.length === 0 ? [] : [actions.map(describeAction).join('\n')]
  return [steps.flatMap((step) => [describeStep(step), ...actionsAfter(step, actions)]).join('\n')]
}

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
