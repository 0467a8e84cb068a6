import type { Action } from '../actions/action.ts'
import type { Entry } from '../threads/conversation.ts'
import { visible, visibleLine } from './output.ts'

const MOST_CHARACTERS = 500
/** What came of a call matters more than what it was given. */
const MOST_OF_INPUT = 200

/** What was said and done, in order, for people: the exact bytes are in `--json`. */
export function describeTurns(entries: readonly Entry[], actions: readonly Action[]): string[] {
  if (entries.length === 0) return []
  return [entries.flatMap((entry) => [describeEntry(entry), ...actionsAfter(entry, actions)]).join('\n')]
}

const MARKS = { user: '>', assistant: '<', summary: '=' } as const

function describeEntry({ kind, body }: Entry): string {
  const text = typeof body.text === 'string' ? body.text : ''
  const calls = Array.isArray(body.toolCalls) ? body.toolCalls.length : 0
  return `${MARKS[kind]} ${brief(text === '' ? (calls === 0 ? '(nothing)' : '(tool calls)') : text)}`
}

const actionsAfter = ({ seq }: Entry, actions: readonly Action[]) =>
  actions.filter(({ entrySeq }) => entrySeq === seq).map(describeAction)

function describeAction(action: Action): string {
  const { tool, input, error, result } = action
  const became = whatBecame(action)
  const detail = error ?? (result === null ? '' : JSON.stringify(result))
  const call = `${visibleLine(tool)} ${brief(JSON.stringify(input), MOST_OF_INPUT)}`
  return `  · ${call}: ${visibleLine(became)}${detail === '' ? '' : ` (${brief(detail)})`}`
}

// Who settles an action when nothing went wrong, or says so in its error.
const USUAL = [null, 'its tool', 'nobody', 'limit', 'repeat']

/** Evidence is named: "done, settled by its probe". */
function whatBecame({ state, repeatOf, settledBy }: Action): string {
  if (repeatOf !== null) return 'answered from the first'
  return `${state.replace('_', ' ')}${USUAL.includes(settledBy) ? '' : `, settled by ${settledBy}`}`
}

function brief(text: string, most = MOST_CHARACTERS): string {
  const shown = text.length <= most ? text : `${text.slice(0, most)}…`
  return visible(shown).replaceAll('\n', '\n  ')
}
