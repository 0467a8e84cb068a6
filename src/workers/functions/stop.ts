export type StopReason = 'cancelled' | 'timeout' | 'lease-lost'

/** Tells a function to stop. Most are never told, and never ask: a signal is made for whoever does, since it costs as much as a step. */
export class Stop {
  #reason: StopReason | undefined
  #controller: AbortController | undefined

  get isTold(): boolean {
    return this.#reason !== undefined
  }

  /** The first that it was told. */
  get reason(): StopReason | undefined {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  tell(reason: StopReason): void {
    this.#reason ??= reason
    this.#controller?.abort(this.#reason)
  }
}
