import { findAction } from '../actions/action.ts'
import type { ActionState } from '../actions/action.ts'
import { HoldfastError } from '../base/errors.ts'
import type { ActionId, RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { runEventsAfter } from '../events/event.ts'
import type { Event } from '../events/event.ts'
import type { ToolCall } from '../loop/ports.ts'
import { findRun, isTerminal } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { viewRun } from '../runs/view.ts'
import type { Runtime } from '../runtime.ts'
import { findEntry } from '../threads/conversation.ts'
import { findMessage } from '../threads/message.ts'
import { actionEvent } from './event.ts'
import type { AgentEvent } from './event.ts'
import { LiveText, RETRY } from './live-text.ts'
import type { SentMessage } from './send.ts'

/**
 * From a message to the end of the run that takes it. What is told comes from the record, so it is the same whoever
 * carries the run out, here or elsewhere, and after a crash; only the model's words come directly, if it is here.
 */
export async function* follow(
  runtime: Runtime,
  sending: Promise<SentMessage>,
  stopped: AbortSignal,
): AsyncGenerator<AgentEvent> {
  const bell = new Bell(runtime)
  // Listening begins before the message is stored: its run may be fast.
  const words = new LiveText()
  const deafen = runtime.watch((event) => {
    words.hear(event)
    bell.ring()
  })
  try {
    const sent = await sending
    words.onlyOf(sent.threadId)
    const reader = { runtime, words, seq: sent.afterSeq }
    for (let runId = sent.runId; ;) {
      const changed = bell.next()
      const run = runId === undefined ? undefined : yield* tell(reader, runId as RunId)
      const taker = await takerOf(runtime, sent, run)
      // Told here, after the last look: a run that ended without the message leaves it to the next one.
      const isItsEnd = run !== undefined && isTerminal(run.state) && (taker === run.id || stopped.aborted)
      if (isItsEnd) return yield { type: 'finished', run: viewRun(run) }
      if (taker !== undefined && taker !== runId) runId = taker
      else await changed
    }
  } finally {
    deafen()
    bell.stop()
  }
}

async function takerOf({ store }: Runtime, { messageId }: SentMessage, run: Run | undefined) {
  const message = await store.read(findMessage, messageId)
  const isLost = message?.state === 'dead' || (message?.state === 'consumed' && message.consumedByRun === null)
  if (isLost)
    throw new HoldfastError(
      'messages/not-answered',
      `no run will take ${messageId}: ${message.reason ?? 'it was taken by hand'}`,
      {
        remedy: `holdfast inbox show ${messageId} has it`,
      },
    )
  return message?.consumedByRun ?? (run === undefined || isTerminal(run.state) ? undefined : run.id)
}

interface Reader {
  readonly runtime: Runtime
  readonly words: LiveText
  /** The last event that was told. */
  seq: number
}

const textEvent = (delta: string | typeof RETRY): AgentEvent =>
  delta === RETRY ? { type: 'retry' } : { type: 'text', delta }

/** Everything that is recorded of the run and was not told yet, and what its model says now. */
async function* tell(reader: Reader, runId: RunId): AsyncGenerator<AgentEvent, Run | undefined> {
  const { store } = reader.runtime
  for (;;) {
    // Read before the events: when it says that the run has ended, the events of that are there.
    const run = await store.read(findRun, runId)
    const events = await store.read(runEventsAfter, runId, reader.seq, LIMITS.page)
    for (const event of events) {
      reader.seq = event.seq
      yield* retell(reader, event)
    }
    for (const delta of reader.words.deltas()) yield textEvent(delta)
    if (events.length < LIMITS.page) return run
  }
}

async function* retell({ runtime, words }: Reader, { type, runId, threadId, data }: Event): AsyncGenerator<AgentEvent> {
  const { store } = runtime
  if (type === 'run.started' || type === 'run.taken_over') {
    words.newAttempt()
    yield { type: 'started', runId: runId ?? '', threadId: threadId ?? '', attempt: Number(data['attempt']) }
  } else if (type === 'run.parked') yield { type: 'waiting', for: String(data['waitsFor']) }
  else if (type === 'step.recorded') {
    const entry = await store.read(findEntry, Number(data['entry']))
    const { text, toolCalls } = (entry?.body ?? {}) as { text?: string; toolCalls?: readonly ToolCall[] }
    for (const delta of words.ofStep(text ?? '')) yield textEvent(delta)
    yield { type: 'step', text: text ?? '', toolCalls: toolCalls ?? [] }
  } else if (type.startsWith('action.')) {
    const action = await store.read(findAction, data['actionId'] as ActionId)
    const state = type === 'action.started' ? 'started' : (data['state'] as ActionState)
    // One that was only proposed is told when it begins.
    if (action !== undefined && state !== 'approved') yield actionEvent(action, state)
  }
}

/** Rings when something was stored, and now and then, because a hint can get lost. */
class Bell {
  readonly #runtime: Runtime
  readonly #stopListening: () => void
  #ring = () => {}

  constructor(runtime: Runtime) {
    this.#runtime = runtime
    this.#stopListening = runtime.store.onChange(() => this.ring())
  }

  ring(): void {
    this.#ring()
  }

  /** Asked for before a look at the store, so that what is stored during the look is not missed. */
  next(): Promise<void> {
    this.#ring()
    return new Promise((resolve) => {
      const cancel = this.#runtime.clock.after(LIMITS.changePollMs * 2, () => this.#ring(), { ref: true })
      this.#ring = () => {
        cancel()
        resolve()
      }
    })
  }

  stop(): void {
    this.#stopListening()
    this.#ring()
  }
}
