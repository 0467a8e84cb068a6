import { Dice } from '../simulation/seeded.ts'
import { Batches, fed, inputsOf, settled, shownInput } from './batch.ts'
import { memoryPlace } from './place.ts'
import type { Input } from './surface.ts'

/** So many tries to leave something out. */
const TRIES = 400

/**
 * The first input of the batch that is a problem by itself, with as much left out as can be. One that hangs or ends this process
 * is not cut down: the outcome of its batch has it.
 */
export async function shrunk(seed: number): Promise<string> {
  const batches = new Batches(memoryPlace())
  try {
    const surface = await batches.surface(seed)
    const alone: Alone = async (input) => {
      await surface.begin?.(new Dice(seed).fork())
      return [...(await fed(surface, input)), ...(await settled(surface))]
    }
    for (const [place, input] of (await inputsOf(surface, seed)).entries()) {
      const problems = await alone(input)
      if (problems.length > 0) return inWords(seed, place, await least(alone, input), problems)
    }
    return `no input of batch ${seed} is a problem by itself: it is what they do together`
  } finally {
    await batches.close()
  }
}

/** What is wrong with one input that nothing came before. */
type Alone = (input: Input) => Promise<readonly string[]>

const inWords = (seed: number, place: number, input: Input, problems: readonly string[]) =>
  `${Batches.surfaceOf(seed).name}, input ${place} of batch ${seed}: ${shownInput(input)}\n${problems.join('\n')}`

/** Whole pieces first, then ever smaller parts of each. */
async function least(alone: Alone, whole: Input): Promise<Input> {
  const cutting = new Cutting(alone, whole)
  for (let place = whole.length - 1; place >= 0; place--) await cutting.isStill(cutting.input.toSpliced(place, 1))
  for (let place = 0; place < cutting.input.length; place++) {
    for (const size of sizesOf(cutting.input[place]!)) await withoutParts(cutting, place, size)
  }
  return cutting.input
}

/** The least that was found so far. */
class Cutting {
  readonly #alone: Alone
  input: Input
  tries = 0

  constructor(alone: Alone, whole: Input) {
    this.#alone = alone
    this.input = whole
  }

  async isStill(smaller: Input): Promise<boolean> {
    this.tries += 1
    if (this.tries > TRIES || (await this.#alone(smaller)).length === 0) return false
    this.input = smaller
    return true
  }
}

async function withoutParts(cutting: Cutting, place: number, size: number): Promise<void> {
  for (let from = 0; from < cutting.input[place]!.length && cutting.tries < TRIES;) {
    const text = cutting.input[place]!
    const isGone = await cutting.isStill(cutting.input.with(place, text.slice(0, from) + text.slice(from + size)))
    if (!isGone) from += size
  }
}

/** Half of it, a quarter, and so on down to one character. */
function sizesOf(text: string): number[] {
  const sizes: number[] = []
  for (let size = text.length; size > 1;) sizes.push((size = Math.ceil(size / 2)))
  return sizes
}
