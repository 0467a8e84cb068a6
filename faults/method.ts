/** One way of looking for faults. Each case is determined by its seed. */
export interface Method {
  readonly name: string
  /** One sentence: what is real, and what goes wrong. */
  readonly title: string
  /** What one case is, in the plural. */
  readonly cases: string
  /** A table of so many cases, not a sea of them: it ends by itself after the last, and a campaign goes on where the last one ended. */
  readonly size?: () => Promise<number>
  /** Of its cases: with another one it is another table. */
  readonly digest?: () => Promise<string>
  /** Runs cases with the seeds `first`, `first + 1` … until `isOver`, at most `most`, and tells of each. */
  run(campaign: Campaign): Promise<void>
  /** The least that still shows what went wrong with this seed, in words that somebody can follow. */
  shrink?(seed: number): Promise<string>
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
  /** As an independent ledger counted them. */
  readonly effects: number
  /** From the last fault until everything had come to its end, in milliseconds; not where nothing went wrong. */
  readonly recoveryMs?: number
  /** What else is worth publishing, each with its unit in the name, such as `memory MiB`; of all cases the highest is kept. */
  readonly peaks?: Readonly<Record<string, number>>
  /** Empty, if all promises were kept. */
  readonly problems: readonly string[]
}
