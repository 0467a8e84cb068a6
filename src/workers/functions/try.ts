import type { StepCall } from '../../define/function.ts'
import type { UnderWay } from '../../define/owner.ts'
import type { StepOutcome } from '../../runs/step.ts'
import type { Stop } from './stop.ts'

/** A try of a write, by the key of its step. */
export interface Try extends Pick<StepOutcome, 'name' | 'tries'>, UnderWay {
  /** Whose it is. */
  readonly run: object
  readonly listed: boolean
}

/** What a step is told; most of them do not ask for the signal. */
export class Told implements StepCall {
  readonly key: string
  readonly #stop: Stop

  constructor(key: string, stop: Stop) {
    this.key = key
    this.#stop = stop
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }
}
