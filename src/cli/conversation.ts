import type { Action } from '../actions/action.ts'
import type { Entry } from '../threads/conversation.ts'
import { visible } from './output.ts'

const MOST_CHARACTERS = 500

/** What was said and done, in order, for people: the exact bytes are in `--json`. */
export function describeTurns(entries: readonly Entry[], actions: readonly Action[]): string[] {
  if (entries.length === 0) return []
  return [entries.flatMap((entry) => [describeEntry(entry), ...actionsAfter(entry, actions)]).join('\n')]
}

function describeEntry({ kind, body }: Entry): string {
  const text = typeof body.text === 'string' ? body.text : ''
  return `${kind === 'user' ? '>' : '<'} ${brief(text === '' ? '(tool calls)' : text)}`
}

const actionsAfter = ({ seq }: Entry, actions: readonly Action[]) =>
  actions.filter(({ entrySeq }) => entrySeq === seq).map(describeAction)

function describeAction({ tool, input, state, error, repeatOf, result }: Action): string {
  const became = repeatOf === null ? state.replace('_', ' ') : 'answered from the first'
  const detail = error ?? (result === null ? '' : JSON.stringify(result))
  return `  · ${tool} ${brief(JSON.stringify(input))}: ${became}${detail === '' ? '' : ` (${brief(detail)})`}`
}

function brief(text: string): string {
  const shown = text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS)}…`
  return visible(shown).replaceAll('\n', '\n  ')
}
