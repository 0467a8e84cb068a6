import type { ModelMessage } from './ports.ts'

/** What is recorded of a compaction. */
export interface SummaryBody {
  readonly text: string
  /** Entries up to this one are not shown any more. */
  readonly covers: number
  /** Replies of the thread among them. */
  readonly replies: number
  /** The last message from the inbox, if it is among them: it stays word for word. */
  readonly prompt: string
  /** Results of entries up to this one are shown in so many characters. */
  readonly clipped?: { readonly upTo: number; readonly characters: number }
  /** `outline`: made without a model, because it would not or could not. */
  readonly made: 'model' | 'outline'
}

/** What is open comes first, as it is now and not as it was when the summary was made. */
export function openingMessage({ text, prompt, covers }: SummaryBody, matters: string): ModelMessage {
  const parts = [
    matters === '' ? '' : `[Open at this moment]\n${matters}`,
    text === '' ? '' : `[The conversation so far, in short; the details are left out]\n${text}`,
    prompt === '' || covers === 0 ? '' : `[The last message to you, word for word]\n${prompt}`,
  ]
  return { role: 'user', text: parts.filter((part) => part !== '').join('\n\n') }
}
