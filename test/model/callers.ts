import { setTimeout as pause } from 'node:timers/promises'

import type { Clock } from '../../src/base/clock.ts'
import type { LanguageModel, ModelCallOptions, ModelReply, ModelRequest } from '../../src/loop/ports.ts'
import { callModel } from '../../src/model/call-model.ts'
import type { ModelOutcome } from '../../src/model/call-model.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'

export const turn: ModelRequest = { system: '', messages: [], tools: [], replies: 0, purpose: 'turn' }
export const side: ModelRequest = { ...turn, purpose: 'side' }

export const replyOf = (text: string, tokens = 0): ModelReply => ({
  text,
  toolCalls: [],
  usage: { inputTokens: tokens, outputTokens: tokens, costMicrousd: tokens },
  finish: 'stop',
})

/** A model that answers with what the function says, and remembers when it was asked. */
export function modelOf(clock: Clock, answer: (asked: number, signal: AbortSignal) => Promise<ModelReply>) {
  const asked: number[] = []
  const model: LanguageModel = {
    id: 'test/model',
    quota: 'test',
    generate: (_request, { signal }) => {
      asked.push(clock.now())
      return answer(asked.length, signal)
    },
  }
  return { model, asked }
}

/** How long real work (a database, a connection on loopback) may take before time goes on without it. */
const MOST_PATIENCE_MS = 200

/**
 * Callers whose time is the test's: it moves on, from one wait to the next, when everybody who is still calling waits.
 * `random` is at its largest, so that waits are never shorter than what is promised for the worst luck.
 */
export class Callers {
  readonly clock = new FakeClock()
  readonly warnings: string[] = []
  readonly waits: number[] = []
  readonly #due = new Set<{ readonly at: number }>()
  #active = 0

  readonly #counted: Clock = {
    now: () => this.clock.now(),
    monotonicMs: () => this.clock.monotonicMs(),
    after: (ms, callback, options) => {
      if (options?.ref !== true) return this.clock.after(ms, callback)
      const due = { at: this.clock.monotonicMs() + ms }
      this.#due.add(due)
      this.waits.push(ms)
      const over = () => this.#due.delete(due)
      const cancel = this.clock.after(ms, () => void (over(), callback()))
      return () => void (over(), cancel())
    },
  }

  async call(
    store: Store,
    model: LanguageModel,
    request: ModelRequest = turn,
    options: Partial<ModelCallOptions> = {},
  ): Promise<ModelOutcome> {
    const random = { id: () => '', hex: () => '', fraction: () => 0.999_999 }
    const ports = { store, clock: this.#counted, random, warn: (text: string) => void this.warnings.push(text) }
    this.#active += 1
    try {
      return await callModel(ports, model, request, { signal: new AbortController().signal, ...options })
    } finally {
      this.#active -= 1
    }
  }

  /** Lets time pass until all of them have ended. */
  async ended<T>(calls: Promise<T>): Promise<T> {
    const state = { over: false }
    const finish = () => void (state.over = true)
    calls.then(finish, finish)
    while (!state.over) await this.#oneStep(() => state.over)
    return calls
  }

  /** Comes back when everybody waits. */
  async allWait(): Promise<void> {
    for (let ms = 0; this.#due.size < this.#active && ms < MOST_PATIENCE_MS; ms++) await pause(1)
  }

  async #oneStep(isOver: () => boolean): Promise<void> {
    await this.allWait()
    if (isOver()) return
    const next = Math.min(...[...this.#due].map(({ at }) => at)) - this.clock.monotonicMs()
    this.clock.advance(Number.isFinite(next) ? Math.max(next, 0) : 1)
    await pause(0)
  }
}
