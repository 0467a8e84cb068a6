import type { Action, Message, Run, Step, WholeThread } from '../api/shapes.ts'
import type { Said } from '../state/live.ts'
import { isActive } from './states.ts'
import { asText, shortId } from './words.ts'

/** One thing in a conversation. Its key stays the same when it is recorded, so nothing moves then. */
export type ConversationItem =
  | {
      readonly kind: 'user'
      readonly key: string
      readonly text: string
      readonly note?: string
      readonly from?: string
    }
  | { readonly kind: 'reply'; readonly key: string; readonly text: string; readonly at: string }
  | { readonly kind: 'live'; readonly key: string; readonly text: string; readonly cut: boolean }
  | { readonly kind: 'note'; readonly key: string; readonly text: string }
  | { readonly kind: 'action'; readonly key: string; readonly action: Action }
  /** `silent`: nothing was said in it. */
  | { readonly kind: 'run'; readonly key: string; readonly run: Run; readonly silent: boolean }

const textOf = ({ body }: Message): string => {
  const { text, summary } = body
  return typeof text === 'string' ? text : typeof summary === 'string' ? summary : asText(body)
}

/** Who speaks, where it is not the person: a child that has ended says how. */
function senderOf({ from, kind, body }: Message): string | undefined {
  const { agent, state } = body
  if (typeof agent === 'string' && typeof state === 'string') return `${kind} of ${agent}: ${state}`
  if (from === null) return kind === 'prompt' ? undefined : kind
  return `${kind} from ${shortId(from)}`
}

function ofMessage(message: Message): ConversationItem {
  const { id, state, reason } = message
  const note =
    state === 'dead'
      ? `not delivered: ${reason ?? 'for an unknown reason'}`
      : state === 'pending'
        ? 'not taken yet'
        : undefined
  const sender = senderOf(message)
  return {
    kind: 'user',
    key: id,
    text: textOf(message),
    ...(note === undefined ? {} : { note }),
    ...(sender === undefined ? {} : { from: sender }),
  }
}

function ofStep(step: Step, messages: ReadonlyMap<string, Message>): ConversationItem[] {
  const { kind, seq, text = '', messageId, from, at } = step
  if (kind === 'user') {
    const message = messageId === undefined ? undefined : messages.get(messageId)
    // What was shown to the model beside a message of another thread (its fences) is for the model.
    if (message !== undefined) return [ofMessage({ ...message, state: 'consumed' })]
    if (from !== undefined) return [{ kind: 'user', key: `entry ${seq}`, text, from }]
    // What nobody sent is a remark of the runtime's own.
    return [
      messageId === undefined ? { kind: 'note', key: `entry ${seq}`, text } : { kind: 'user', key: messageId, text },
    ]
  }
  if (kind === 'summary') return [{ kind: 'note', key: `entry ${seq}`, text: 'What came before was summarised.' }]
  return text === '' ? [] : [{ kind: 'reply', key: `entry ${seq}`, text, at }]
}

/** The record of a reply takes the place of what was heard of it. */
const isRecorded = ({ text }: Said, steps: readonly Step[]) =>
  steps.findLast(({ kind }) => kind === 'assistant')?.text?.startsWith(text) === true

/** A thread as a list of things in their order: what was said, what was done, how each run stands. */
export function conversationOf(thread: WholeThread, said: ReadonlyMap<string, Said>): ConversationItem[] {
  const runs = thread.runs.toReversed()
  const steps = thread.conversation as readonly Step[]
  const messages = new Map(thread.messages.map((message) => [message.id, message]))
  const stepsOf = Map.groupBy(steps, ({ runId }) => runId)
  const actionsOf = Map.groupBy(thread.actions, ({ step }) => step)
  const waiting = thread.messages.filter(({ state }) => state === 'pending' || state === 'leased')
  const current = runs.find(isActive)
  const items = runs.flatMap((run) => {
    const own = stepsOf.get(run.id) ?? []
    const heard = new Set(own.map(({ messageId }) => messageId))
    // A run that was stopped in the middle of its turn has taken messages of which the conversation says nothing.
    const taken = thread.messages.filter(({ id, consumedByRun }) => consumedByRun === run.id && !heard.has(id))
    const live = said.get(run.id)
    // The first answer brings what was asked for it; until then it is what the call was given.
    const given = own.length === 0 && (run.input ?? undefined) !== undefined ? [givenTo(run)] : []
    const mine = run === current ? waiting : []
    const before = mine.filter(({ createdAt }) => live === undefined || Date.parse(createdAt) <= live.since)
    const after = mine.filter((message) => !before.includes(message))
    return [
      ...given,
      ...own.flatMap((step) => [
        ...ofStep(step, messages),
        ...(actionsOf.get(step.seq) ?? []).map((action): ConversationItem => ({
          kind: 'action',
          key: action.id,
          action,
        })),
      ]),
      ...[...taken, ...before].map(ofMessage),
      ...(live === undefined || isRecorded(live, own) ? [] : [liveOf(run, live)]),
      ...after.map(ofMessage),
      { kind: 'run', key: run.id, run, silent: own.length === 0 } satisfies ConversationItem,
    ]
  })
  const rest = current === undefined ? waiting : []
  const dead = thread.messages.filter(({ state }) => state === 'dead')
  return [...items, ...[...rest, ...dead].map(ofMessage)]
}

const givenTo = ({ id, agent, input }: WholeThread['runs'][number]): ConversationItem => ({
  kind: 'user',
  key: `input ${id}`,
  text: asText(input),
  from: `a call of ${agent}`,
})

/** What was heard of a reply: it goes on, or it was cut off with its run and is not part of the record. */
const liveOf = (run: Run, { text, reply }: Said): ConversationItem => ({
  kind: 'live',
  key: `live ${run.id} ${reply}`,
  text,
  cut: !isActive(run),
})
