import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { Dice } from '../simulation/seeded.ts'
import type { Outcome } from '../method.ts'
import { SURFACES } from './surfaces.ts'
import type { Input, OpenSurface } from './surface.ts'

/** A case is so many inputs of one surface. */
export const BATCH = 100
/** Nobody waits longer for an answer to anything. */
const SLOW_MS = 2_000
/** Whoever counts, and takes less than so many times the processor's own time, has it to himself. */
const HAS_TIME = 1.15
/** By then it is a hang, however busy the machine is. */
const HANG_MS = 20_000

export class Hang extends Error {}

/** On one line, and not all of a long one. */
export const shownInput = (input: Input): string => {
  const text = JSON.stringify(input)
  return text.length > 1_500 ? `${text.slice(0, 1_500)}… (${text.length} characters)` : text
}

/** The surfaces of a process, opened when their turn comes and used again. */
export class Batches {
  readonly #folder: string
  readonly #open = new Map<string, OpenSurface>()
  /** Inputs of the batch that is under way, or was the last. */
  fed = 0

  constructor(place: string) {
    this.#folder = mkdtempSync(join(place, 'holdfast-fuzzing-'))
  }

  /** One surface after the other, so that a row of seeds has all of them. */
  static surfaceOf = (seed: number) => SURFACES[seed % SURFACES.length]!

  async surface(seed: number): Promise<OpenSurface> {
    const surface = Batches.surfaceOf(seed)
    const known = this.#open.get(surface.name)
    if (known !== undefined) return known
    const opened = await surface.open(mkdtempSync(join(this.#folder, `${surface.name.replaceAll(/\W+/g, '-')}-`)))
    this.#open.set(surface.name, opened)
    return opened
  }

  async play(seed: number): Promise<Outcome> {
    const surface = await this.surface(seed)
    const before = surface.runs?.() ?? 0
    const inputs = await inputsOf(surface, seed)
    const problems: string[] = []
    const width = surface.width ?? 1
    this.fed = 0
    for (let place = 0; place < inputs.length; place += width) {
      const together = inputs.slice(place, place + width).map(async (input, index) => {
        this.fed += 1
        for (const problem of await fed(surface, input)) problems.push(`input ${place + index}: ${problem}`)
      })
      await Promise.all(together)
    }
    problems.push(...(await settled(surface)))
    return {
      seed,
      faults: { [Batches.surfaceOf(seed).name]: this.fed },
      runs: (surface.runs?.() ?? 0) - before,
      effects: 0,
      peaks: { 'memory MiB': Math.ceil(process.memoryUsage().rss / 2 ** 20) },
      problems: problems.slice(0, 10),
    }
  }

  async close(): Promise<void> {
    for (const surface of this.#open.values()) await surface.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export async function inputsOf(surface: OpenSurface, seed: number): Promise<readonly Input[]> {
  const dice = new Dice(seed)
  await surface.begin?.(dice.fork())
  return Array.from({ length: BATCH }, () => surface.draw(dice))
}

export async function settled(surface: OpenSurface): Promise<readonly string[]> {
  try {
    return (await surface.settle?.()) ?? []
  } catch (error) {
    return [`what it left behind cannot be looked at: ${error instanceof Error ? error.stack : String(error)}`]
  }
}

/**
 * On a machine that has time, one that is slow once is slow: what is fed again may be known by then, and take another way. On a
 * busy one it is fed twice more, and one of the three is quick, unless it is the input's doing. On a very busy one, what does
 * nothing but count is slow too, and the input may be as much slower.
 */
export async function fed(surface: OpenSurface, input: Input): Promise<readonly string[]> {
  for (let attempt = 1; ; attempt++) {
    const began = performance.now()
    const problems = await withinReason(surface.feed(input), input)
    const took = performance.now() - began
    if (problems.length > 0 || took <= SLOW_MS) return problems
    const slower = await busyness()
    if (slower < HAS_TIME) return [`it took ${Math.round(took)} ms on a machine that had time`]
    if (took <= SLOW_MS * slower) return problems
    if (attempt === 3) return [`it took ${Math.round(took)} ms, three times in a row`]
  }
}

/** The worst of a few moments: a single one may be a lucky one. */
async function busyness(): Promise<number> {
  let worst = 1
  for (let moment = 0; moment < 4; moment++) {
    worst = Math.max(worst, slowness())
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return worst
}

/** How many times as long as the processor's own time something takes at this moment. */
function slowness(): number {
  const [began, before] = [performance.now(), process.threadCpuUsage()]
  let sum = 0
  for (let count = 0; count < 2e7; count++) sum = (sum + count) % 1_000_003
  const { user, system } = process.threadCpuUsage(before)
  const ownMs = (user + system) / 1_000
  return sum >= 0 && ownMs > 1 ? Math.max(1, (performance.now() - began) / ownMs) : 1
}

async function withinReason(answer: Promise<readonly string[]>, input: Input): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined
  const hang = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Hang(`no answer after ${HANG_MS} ms: ${shownInput(input)}`)), HANG_MS)
  })
  try {
    return await Promise.race([answer, hang])
  } catch (error) {
    if (error instanceof Hang) throw error
    return [`it was answered by an exception: ${error instanceof Error ? error.stack : String(error)}`]
  } finally {
    clearTimeout(timer)
  }
}
