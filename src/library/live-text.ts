import type { LiveEvent } from '../workers/agents/execute-agent.ts'

const END = Symbol('the end of a step')
/** What was heard of the step so far is void: its call is made again. */
export const RETRY = Symbol('a call that is made again')

/**
 * The words of a model as they come, put in order with what is recorded. They arrive by two ways: a delta at once, a
 * record when it was looked up. All deltas of a step are heard before its end, and its end after its record was
 * stored, so what is heard behind it belongs to the next step.
 */
export class LiveText {
  #early: LiveEvent[] | undefined = []
  #threadId: string | undefined
  readonly #queue: (string | typeof END | typeof RETRY)[] = []
  #heard = false
  /** Steps whose record was seen before their end was heard. */
  #ahead = 0

  /** Until it is known whose words are wanted, all are kept. */
  onlyOf(threadId: string): void {
    const early = this.#early ?? []
    this.#early = undefined
    this.#threadId = threadId
    for (const event of early) this.hear(event)
  }

  hear(event: LiveEvent): void {
    this.#early?.push(event)
    if (event.threadId !== this.#threadId) return
    if (event.kind === 'text') this.#queue.push(event.delta)
    if (event.kind === 'retry') this.#queue.push(RETRY)
    if (event.kind !== 'step') return
    if (this.#ahead > 0) this.#ahead -= 1
    else this.#queue.push(END)
  }

  /** Another process may have had it before: of its steps nothing was heard here, nor will be. */
  newAttempt(): void {
    this.#ahead = 0
  }

  /** Of the step that is not recorded yet. */
  *deltas(): Generator<string | typeof RETRY> {
    for (let next = this.#queue[0]; next !== undefined && next !== END; next = this.#queue[0]) {
      this.#queue.shift()
      // A call that failed before it had said anything has nothing to take back.
      if (next === RETRY && !this.#heard) continue
      this.#heard = next !== RETRY
      yield next
    }
  }

  /** The step is recorded: the rest of its deltas, or all of its text if none was heard here. */
  *ofStep(text: string): Generator<string | typeof RETRY> {
    yield* this.deltas()
    if (this.#queue[0] === END) this.#queue.shift()
    else this.#ahead += 1
    if (!this.#heard && text !== '') yield text
    this.#heard = false
  }
}
