import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { veiledStream } from '../base/visible.ts'
import type { VeiledStream } from '../base/visible.ts'
import type { LiveEvent } from '../runtime.ts'

/** A piece of a reply that is being said: `at` is where in it the piece begins. */
export interface TextPart {
  readonly runId: string
  readonly threadId: string
  readonly agent: string
  /** Tells one reply of a run from the next. */
  readonly reply: number
  readonly at: number
  readonly delta: string
  /** Nothing more will come of it: it is recorded as a step. */
  readonly ended?: true
}

interface Reply {
  readonly event: LiveEvent
  readonly reply: number
  /** Without secrets; the beginning of what may be one is held, because a piece of it would not be known for one. */
  text: string
  readonly veil: VeiledStream
  recorded: boolean
}

/** How far a reader has got in a reply. */
interface Heard {
  readonly reply: Reply
  readonly at: number
}

/**
 * What is being said just now, and not yet recorded. Each reader remembers only how far it has got, so a slow one costs
 * a number, not a queue, and one that begins in the middle of a reply gets it from its beginning.
 */
export class LiveTexts {
  readonly #replies = new Map<RunId, Reply>()
  readonly #listeners = new Set<() => void>()
  #count = 0

  hear(event: LiveEvent): void {
    if (event.kind === 'text') this.#append(event, event.delta)
    // The next word begins another reply, in place of this one.
    else if (event.kind === 'retry') this.#replies.delete(event.runId)
    else if (event.kind !== 'step' || !this.#record(event.runId)) return
    for (const listener of this.#listeners) listener()
  }

  /** A run that ended in the middle of a reply says no more of it. */
  forget(runId: RunId): void {
    this.#replies.delete(runId)
  }

  onText(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Each call gives what came since the last one. */
  reader(): () => TextPart[] {
    const heard = new Map<RunId, Heard>()
    return () => [...this.#ended(heard), ...this.#since(heard)]
  }

  #append(event: LiveEvent, delta: string): void {
    const known = this.#replies.get(event.runId)
    if (known === undefined) {
      if (this.#replies.size >= LIMITS.liveReplies) this.#forgetOldest()
      const veil = veiledStream()
      this.#replies.set(event.runId, {
        event,
        reply: (this.#count += 1),
        text: veil.write(delta),
        veil,
        recorded: false,
      })
    } else if (known.text.length < LIMITS.liveCharacters) known.text += known.veil.write(delta)
  }

  #forgetOldest(): void {
    const [oldest] = this.#replies.keys()
    if (oldest !== undefined) this.#replies.delete(oldest)
  }

  #record(runId: RunId): boolean {
    const reply = this.#replies.get(runId)
    if (reply !== undefined) reply.recorded = true
    return this.#replies.delete(runId)
  }

  *#ended(heard: Map<RunId, Heard>): Iterable<TextPart> {
    for (const [runId, { reply, at }] of heard) {
      if (this.#replies.get(runId) === reply) continue
      heard.delete(runId)
      if (reply.recorded) yield { ...partOf(reply, at), delta: '', ended: true }
    }
  }

  *#since(heard: Map<RunId, Heard>): Iterable<TextPart> {
    for (const [runId, reply] of this.#replies) {
      const at = heard.get(runId)?.at ?? 0
      if (at === reply.text.length) continue
      heard.set(runId, { reply, at: reply.text.length })
      yield partOf(reply, at)
    }
  }
}

const partOf = ({ event: { runId, threadId, agent }, reply, text }: Reply, at: number): TextPart => ({
  runId,
  threadId,
  agent,
  reply,
  at,
  delta: text.slice(at),
})
