import type { ProbeAnswer } from './perform.ts'

/** What a step is told: the idempotency key, which is the same for every try of it, and when to stop. */
export interface StepCall {
  readonly key: string
  readonly signal: AbortSignal
}

export interface StepOptions {
  /** `write` (the default): its intent is on disk before it happens, and it happens at most once. `read`: it may happen again. */
  readonly effect?: 'read' | 'write'
  /** It honours its key itself, so that after a crash it may be run again. */
  readonly idempotent?: boolean
  /** Asks the world whether it happened. */
  readonly probe?: (call: StepCall) => ProbeAnswer | PromiseLike<ProbeAnswer>
}

/** One run of a function, as the function sees it. */
export interface FunctionRun<Input = unknown> {
  readonly id: string
  readonly input: Input
  /** 1, or more where an earlier worker was lost: then the steps that are recorded are answered from the record. */
  readonly attempt: number
  /** Aborted when the run is cancelled or its worker has lost it. */
  readonly signal: AbortSignal
  /**
   * Does something once and remembers what came of it, as JSON. A step is known by its name; the second of the same name is
   * `name#2`. What the function does outside of steps is done again after a crash.
   */
  step<T>(name: string, work: (call: StepCall) => T | PromiseLike<T>, options?: StepOptions): Promise<T>
}

export type FunctionBody = (run: FunctionRun<never>) => unknown
