import type { Wait } from '../../runs/finish-call.ts'

/** Why a function got no further. */
export type Halt =
  | { readonly kind: 'stopped'; readonly why: 'cancel-requested' | 'superseded' | 'timeout' }
  /** A write may or may not have happened, or may not be done without a yes: a person says which. */
  | { readonly kind: 'undecided' }
  | ({ readonly kind: 'waits' } & Wait)
  /** It cannot go on: its code is not the one that began, or what a step returned cannot be kept. */
  | { readonly kind: 'broken'; readonly error: string }

/** The first reason counts. */
export class Halting {
  #halt: Halt | undefined
  #isOver = false
  readonly #waiting: ((halt: Halt) => void)[] = []

  get isSo(): boolean {
    return this.#halt !== undefined || this.#isOver
  }

  halt(halt: Halt): void {
    if (this.#halt !== undefined) return
    this.#halt = halt
    for (const tell of this.#waiting) tell(halt)
  }

  /** Its code has come to its end: what comes later does not begin, and nobody is told why. */
  over(): void {
    this.#isOver = true
  }

  /** Tells at once where it is so already. */
  when(tell: (halt: Halt) => void): void {
    if (this.#halt === undefined) this.#waiting.push(tell)
    else tell(this.#halt)
  }
}
