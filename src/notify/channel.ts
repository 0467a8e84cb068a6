import type { Notice } from './matter.ts'

/** A way to a person outside. It tells, and that is all: no answer of it decides anything. */
export interface Channel {
  /** As it is stored and shown: by what it is, without its secret. */
  readonly name: string
  /** Rejects, with why, unless it was taken. */
  send(message: Message, signal: AbortSignal): Promise<void>
}

export interface Message {
  /** The same for every try: who gets it twice can tell. */
  readonly id: string
  readonly notice: Notice
  /** Where a browser shows it, if this daemon has a window. */
  readonly link?: string
}

/** In words, for people: a title, and what else there is to know. Control characters were made visible in the notice. */
export function inWords({ notice, link }: Message): { readonly title: string; readonly text: string } {
  const { title, threadId, command } = notice
  const lines = [threadId === undefined ? '' : `thread ${threadId}`, command, link ?? '']
  return { title, text: lines.filter((line) => line !== '').join('\n') }
}
