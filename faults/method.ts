/** One way of looking for faults. Each case is determined by its seed. */
export interface Method {
  readonly name: string
  readonly title: string
  /** What one case is, in the plural. */
  readonly cases: string
  /** Runs cases with the seeds `first`, `first + 1` … until `isOver`, and tells of each. */
  run(campaign: Campaign): Promise<void>
}

export interface Campaign {
  readonly first: number
  /** At most so many. */
  readonly most: number
  readonly isOver: () => boolean
  readonly tell: (outcome: Outcome) => void
}

export interface Outcome {
  readonly seed: number
  /** How often each kind of fault happened. */
  readonly faults: Readonly<Record<string, number>>
  readonly runs: number
  readonly effects: number
  /** From the last fault until everything had come to its end, in milliseconds; not where nothing went wrong. */
  readonly recoveryMs?: number
  /** Empty, if all promises were kept. */
  readonly problems: readonly string[]
}
