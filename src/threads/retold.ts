import { LIMITS } from '../base/limits.ts'
import type { Entry } from './conversation.ts'

/**
 * What was said in a conversation, for a model that was not there: the end of it, as quotes, so that nothing in it can be taken
 * for anything else. Empty: nothing was said.
 */
export function retold(entries: readonly Entry[]): string {
  const said = entries.flatMap(({ kind, body }) => {
    const text = typeof body['text'] === 'string' ? body['text'].trim() : ''
    return text === '' ? [] : [`${kind === 'user' ? 'You were told' : 'You said'}:\n${quoted(text)}`]
  })
  if (said.length === 0) return ''
  const [whole, most] = [said.join('\n\n'), LIMITS.retoldCharacters]
  const kept = whole.length <= most ? whole : `> …${whole.slice(-most)}`
  // Half a character, by the cut or by the model that said it, is nothing that a request can hold.
  return `The session in which this conversation was held is gone. What was said there before, as far as it is known:\n\n${kept.toWellFormed()}\n\nWhat you are told now:\n\n`
}

const quoted = (text: string) => text.replaceAll(/^/gm, '> ')
