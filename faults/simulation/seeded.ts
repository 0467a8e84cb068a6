import type { Instant } from '../../src/base/clock.ts'
import type { Randomness } from '../../src/base/ids.ts'

/** A stream of numbers that one seed determines: mulberry32. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(most: number): number {
    return Math.floor(this.fraction() * most)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!
  }

  /** Another stream, so that one who asks more often does not change what the others get. */
  fork(): Dice {
    return new Dice(Math.floor(this.fraction() * 2 ** 32))
  }
}

const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Ids as the product makes them, ordered by time, from a seed. */
export function seededRandomness(dice: Dice, now: () => Instant): Randomness {
  const hex = (bytes: number) => {
    let text = ''
    for (let at = 0; at < bytes; at++) text += BYTES[dice.below(256)]
    return text
  }
  return {
    id: () => `${now().toString(16).padStart(12, '0')}${hex(10)}`,
    hex,
    fraction: () => dice.fraction(),
  }
}
