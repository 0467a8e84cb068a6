/**
 * Several sessions at once, of which one at a time has something to do: what slows the machine slows them all alike, and what
 * the calls of one round took can be compared pair by pair.
 */
export class Turns {
  readonly #rounds: number
  readonly #onBegin: () => void
  readonly #waiting: ((() => void) | undefined)[]
  readonly #from: number[]
  readonly #times: number[][]
  #order: number[] = []
  #round = 0
  isOver = false

  /** `onBegin`: once all of them are there. */
  constructor(sessions: number, rounds: number, onBegin: () => void) {
    this.#rounds = rounds
    this.#onBegin = onBegin
    this.#waiting = Array.from({ length: sessions }, () => undefined)
    this.#from = Array.from({ length: sessions }, () => 0)
    this.#times = Array.from({ length: sessions }, () => [])
  }

  /** What each call of it took. */
  timesOf(session: number): readonly number[] {
    return this.#times[session] ?? []
  }

  /** Ends the call that this session has under way, and resolves when its next may begin, or when all is over. */
  async next(session: number): Promise<void> {
    if (this.#round > 0) this.#times[session]?.push(performance.now() - (this.#from[session] ?? 0))
    await new Promise<void>((resolve) => {
      this.#waiting[session] = resolve
      if (this.#waiting.every((each) => each !== undefined)) this.#pass()
    })
  }

  /** Each round begins with another session: who follows whom makes a difference to what is in the processor's caches. */
  #pass(): void {
    if (this.#order.length === 0) {
      if (this.#round === this.#rounds) return this.#end()
      if (this.#round === 0) this.#onBegin()
      const sessions = [...this.#waiting.keys()]
      const first = this.#round % sessions.length
      this.#order = [...sessions.slice(first), ...sessions.slice(0, first)]
      this.#round += 1
    }
    const session = this.#order.shift() ?? 0
    const go = this.#waiting[session]
    this.#waiting[session] = undefined
    setTimeout(() => {
      this.#from[session] = performance.now()
      go?.()
    }, BREATH_MS)
  }

  #end(): void {
    this.isOver = true
    for (const go of this.#waiting) go?.()
  }
}

/** What the session before has left to do is done by then. */
const BREATH_MS = 5

/** A difference, and between what it lies nine times out of ten. */
export interface Difference {
  readonly ms: number
  readonly from: number
  readonly to: number
}

const SAMPLES = 2_000
/** The first calls load what the later ones find loaded. */
const FIRST = 5

/** The median of what one session took more than the other in each round, and how far it could have come out otherwise. */
export function difference(ours: readonly number[], others: readonly number[]): Difference {
  const pairs = ours.map((time, index) => time - (others[index] ?? 0)).slice(FIRST)
  const again = () => median(pairs.map(() => pairs[Math.floor(Math.random() * pairs.length)] ?? 0))
  const medians = Array.from({ length: SAMPLES }, again).toSorted((a, b) => a - b)
  const at = (share: number) => rounded(medians[Math.floor(SAMPLES * share)] ?? 0)
  return { ms: rounded(median(pairs)), from: at(0.05), to: at(0.95) }
}

export const rounded = (value: number): number => Math.round(value * 100) / 100

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
