/** Chance that can be had again: the seed is printed, and HOLDFAST_SEED brings it back. */
export interface Chance {
  readonly seed: number
  /** A whole number in [0, below). */
  below(limit: number): number
}

export function printedChance(what: string): Chance {
  const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`${what}: HOLDFAST_SEED=${seed}`)
  return chance(seed)
}

/** mulberry32: small, and good enough to shuffle. */
export function chance(seed: number): Chance {
  let state = seed >>> 0
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { seed, below: (limit) => Math.floor(fraction() * limit) }
}
