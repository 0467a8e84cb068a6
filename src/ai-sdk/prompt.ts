import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'

import { digestOf } from '../base/canonical-json.ts'
import { keep } from './kept.ts'

/*
 * A question is known by what is asked. The loop is not ours: after a crash it comes to the same questions again, side by side
 * perhaps, and in another order; what tells them apart is the conversation.
 */

export const digestOfPrompt = (prompt: LanguageModelV4Prompt): string => digestOf(wellFormed(prompt.map(comparable)))

/** Results stand in the order in which the tools ended; from the record they come in the order of the calls. */
function comparable(message: LanguageModelV4Message): unknown {
  const { role, content } = message
  if (role !== 'tool') return keep(message)
  // By code units: a process in another language must come to the same order.
  const byCall = content.toSorted((a, b) => (idOf(a) === idOf(b) ? 0 : idOf(a) < idOf(b) ? -1 : 1))
  return keep({ ...message, content: byCall })
}

const idOf = (part: { readonly type: string; readonly toolCallId?: string }) => part.toolCallId ?? ''

/** A model's words may end in half a character, which has no canonical form. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key.toWellFormed(), wellFormed(each)]))
}

interface Inserted {
  readonly at: number
  readonly after: string
  readonly messages: readonly string[]
}

/**
 * Where the messages of the inbox stand in a conversation that knows nothing of them: behind what had been said when they were
 * first shown. Where that has been replaced (a loop may shorten what it keeps), they stand in front.
 */
export class Insertions {
  readonly #inserted: Inserted[] = []

  add(prompt: LanguageModelV4Prompt, messages: readonly string[]): void {
    if (messages.length > 0)
      this.#inserted.push({ at: prompt.length, after: digestOfPrompt(prompt), messages: [...messages] })
  }

  /** The prompt as the model is shown it, with what is new at its end. */
  into(prompt: LanguageModelV4Prompt, fresh: readonly string[]): LanguageModelV4Prompt {
    if (this.#inserted.length + fresh.length === 0) return prompt
    const front = prompt.findIndex(({ role }) => role !== 'system')
    const places = new Map<number, LanguageModelV4Message[]>()
    for (const { at, after, messages } of this.#inserted) {
      const isThere = at <= prompt.length && digestOfPrompt(prompt.slice(0, at)) === after
      const place = isThere ? at : Math.max(front, 0)
      places.set(place, [...(places.get(place) ?? []), ...messages.map(asMessage)])
    }
    const shown = prompt.flatMap((message, index) => [...(places.get(index) ?? []), message])
    return [...shown, ...(places.get(prompt.length) ?? []), ...fresh.map(asMessage)]
  }
}

const asMessage = (text: string): LanguageModelV4Message => ({ role: 'user', content: [{ type: 'text', text }] })
