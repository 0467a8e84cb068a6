import { actionsAfter } from '../actions/action.ts'
import type { Action } from '../actions/action.ts'
import { answersOf } from '../actions/edit.ts'
import type { CallAnswer } from '../actions/edit.ts'
import { LIMITS } from '../base/limits.ts'
import type { Run } from '../runs/run.ts'
import type { Transition } from '../store/transition.ts'
import { conversationAfter, countReplies, lastSummaryOf } from '../threads/conversation.ts'
import type { Entry } from '../threads/conversation.ts'
import { findThread } from '../threads/thread.ts'
import { clip } from './clip.ts'
import { openMatters } from './open-matters.ts'
import type { ModelMessage, ToolCall } from './ports.ts'
import { isEmpty } from './reply.ts'
import { openingMessage } from './summary.ts'
import type { SummaryBody } from './summary.ts'
import { charactersOf } from './transcript.ts'

/** Where the messages of an entry begin. */
interface Mark {
  readonly at: number
  readonly seq: number
}

/** The conversation as the next model call will be shown it, kept in memory while a run goes on. */
export class Session {
  readonly generation: number
  /** With what was spent up to the last thing that was recorded. */
  run: Run
  messages: ModelMessage[] = []
  /** Replies of the model on this thread so far, and in this run. */
  replies = 0
  turns = 0
  /** Replies in a row, in this run, that were cut off, and that were empty. */
  truncated = 0
  empty = 0
  /** The actions of the last reply, as far as they are known. */
  open: readonly Action[] = []
  /** What the model said last; the parts of a text that was cut off belong together. */
  lastText = ''
  /** The last message from the inbox. */
  prompt = ''
  #summary: SummaryBody | undefined
  #marks: Mark[] = []
  #goesOn = false
  /** The provider's own count of everything up to the last reply, and the characters that came after it. */
  #countedTokens = 0
  #characters = 0

  constructor(generation: number, run: Run) {
    this.generation = generation
    this.run = run
  }

  /** The model has been told something that it has not answered. */
  get owesReply(): boolean {
    const last = this.messages.at(-1)
    return last !== undefined && last.role !== 'assistant'
  }

  /** What the next request will be about, in tokens; `overhead` is what is sent with every one. */
  tokens(overhead: number): number {
    const counted = this.#countedTokens === 0 ? overhead : this.#countedTokens
    return counted + Math.ceil(this.#characters / LIMITS.charactersPerToken)
  }

  /** The next entry of the conversation, as it was read or has just been written. */
  add(entry: Entry): void {
    this.#marks.push({ at: this.messages.length, seq: entry.seq })
    if (entry.kind === 'user') this.#show(entry)
    else this.#reply(entry)
  }

  #show({ body }: Entry): void {
    const text = wordsOf(body)
    if (typeof body.messageId === 'string') this.prompt = text
    this.#push({ role: 'user', text })
  }

  #reply({ body, runId }: Entry): void {
    const [text, toolCalls] = [wordsOf(body), (body.toolCalls ?? []) as readonly ToolCall[]]
    this.#push({ role: 'assistant', text, toolCalls })
    const [mine, cut, empty] = [runId === this.run.id, body.finish === 'length', isEmpty({ text, toolCalls })]
    this.replies += 1
    this.turns += mine ? 1 : 0
    this.truncated = cut && mine ? this.truncated + 1 : 0
    this.empty = empty && mine ? this.empty + 1 : 0
    this.lastText = this.#goesOn ? `${this.lastText}${text}` : text
    this.#goesOn = cut && toolCalls.length === 0
    if (typeof body.contextTokens === 'number') {
      this.#countedTokens = body.contextTokens
      this.#characters = 0
    }
  }

  /** The results, in the order of the calls: every call of the model gets an answer, whatever became of it. */
  answer(actions: readonly Action[], most: number = LIMITS.resultCharacters): void {
    for (const answer of answersOf(actions)) this.#push(resultMessage(answer, most))
  }

  #push(message: ModelMessage): void {
    this.messages.push(message)
    this.#characters += charactersOf(message)
  }

  /** Begins with what stands for everything before. */
  begin(summary: SummaryBody, matters: string): void {
    this.#summary = summary
    this.replies = summary.replies
    this.prompt = summary.prompt
    this.#push(openingMessage(summary, matters))
  }

  /**
   * Where to cut, so that at most about so many characters stay word for word: always before an entry, so never between a
   * call and its result, and never behind the last one.
   */
  cut(characters: number): Cut {
    let [place, kept, end] = [this.#marks.length - 1, 0, this.messages.length]
    for (let index = this.#marks.length - 1; index >= 0; index--) {
      const { at } = this.#marks[index]!
      kept += this.messages.slice(at, end).reduce((sum, message) => sum + charactersOf(message), 0)
      if (kept > characters && index < this.#marks.length - 1) break
      place = index
      end = at
    }
    const at = this.#marks[place]?.at ?? this.messages.length
    const stays = this.messages.slice(at)
    return {
      before: this.#summary?.text ?? '',
      older: this.messages.slice(this.#marks[0]?.at ?? at, at),
      stays,
      newEntries: Math.max(0, place),
      covers: (this.#marks[place]?.seq ?? 1) - 1,
      last: this.#marks.at(-1)?.seq ?? 0,
      replies: this.replies - stays.filter(({ role }) => role === 'assistant').length,
    }
  }

  /** From now on the summary stands for what it covers. */
  compact(summary: SummaryBody, matters: string): void {
    this.#summary = summary
    const marks = this.#marks.filter(({ seq }) => seq > summary.covers)
    const from = marks[0]?.at ?? this.messages.length
    const most = summary.clipped?.characters ?? Number.POSITIVE_INFINITY
    const stays = this.messages.slice(from).map((message) => shortened(message, most))
    this.#marks = marks.map(({ at, seq }) => ({ at: at - from + 1, seq }))
    this.messages = []
    this.#countedTokens = 0
    this.#characters = 0
    for (const message of [openingMessage(summary, matters), ...stays]) this.#push(message)
  }
}

/** A conversation taken apart. */
export interface Cut {
  /** What the summary before this one says. */
  readonly before: string
  readonly older: readonly ModelMessage[]
  readonly stays: readonly ModelMessage[]
  /** How many entries of the older part no summary covers yet. */
  readonly newEntries: number
  readonly covers: number
  readonly last: number
  /** Replies of the thread in the older part and before it. */
  readonly replies: number
}

/** What is recorded of a run's thread, read once: a resumed run goes on from here. What a summary covers is not read. */
export function* readSession(run: Run): Transition<Session> {
  const thread = yield* findThread.single(run.threadId)
  const generation = thread?.generation ?? 1
  const session = new Session(generation, run)
  const written = yield* lastSummaryOf.single(run.threadId, generation)
  const summary = written?.body as unknown as SummaryBody | undefined
  if (summary !== undefined) session.begin(summary, yield* openMatters(run.threadId, generation))
  const entries = yield* conversationAfter.single(run.threadId, generation, summary?.covers ?? 0)
  const actions = entries[0] === undefined ? [] : yield* actionsAfter.single(run.threadId, entries[0].seq - 1)
  const byEntry = Map.groupBy(actions, ({ entrySeq }) => entrySeq)
  const last = entries.at(-1)
  for (const entry of entries) {
    session.add(entry)
    const results = byEntry.get(entry.seq) ?? []
    if (entry === last) session.open = results
    else session.answer(results, mostShown(summary, entry.seq))
  }
  session.turns = (yield* countReplies.single(run.id)).count
  return session
}

const mostShown = (summary: SummaryBody | undefined, seq: number): number =>
  summary?.clipped !== undefined && seq <= summary.clipped.upTo ? summary.clipped.characters : LIMITS.resultCharacters

/** Written by `recordTurn`, so it has a text. */
const wordsOf = ({ text }: Readonly<Record<string, unknown>>): string => (typeof text === 'string' ? text : '')

const shortened = (message: ModelMessage, most: number): ModelMessage =>
  message.role === 'tool' ? { ...message, text: clip(message.text, most) } : message

/** In words for the model: what happened, what certainly did not, what nobody knows. */
function resultMessage({ action, changed }: CallAnswer, most: number): ModelMessage {
  const { callId, tool, input } = action
  // Whole, or the model would go on as if its own arguments had been used.
  const note = changed
    ? `(a person changed this call before it was done; its arguments were: ${JSON.stringify(input)})\n`
    : ''
  const text = `${note}${resultText(action)}`
  return { role: 'tool', callId, tool, text: clip(text, most), failed: action.state !== 'done' }
}

function resultText({ state, result, error, repeatOf }: Action): string {
  const value = typeof result === 'string' ? result : JSON.stringify(result)
  if (state === 'done') return repeatOf === null ? value : `${repeatNote(repeatOf)}\n${value}`
  if (state === 'in_doubt')
    return `unknown: it may or may not have happened (${error ?? 'it was cut off'}); do not assume either`
  return `${state}: ${error ?? 'it did not happen'}`
}

const repeatNote = (original: string) =>
  `(the same as an earlier call, which was not performed again; only a person can allow that: holdfast actions again ${original})`
