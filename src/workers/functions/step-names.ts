import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'

/** By what the steps of a run are known: the second of a name gets a number behind it. */
export class StepNames {
  readonly #counts = new Map<string, number>()

  next(name: string): string {
    // And a database cannot keep a NUL.
    if (name === '' || name.length > LIMITS.stepNameCharacters || name.includes('#') || name.includes('\0'))
      throw new HoldfastError('usage/step', `"${name}" cannot be the name of a step`, {
        remedy: `give it 1 to ${LIMITS.stepNameCharacters} characters, and no # or NUL`,
      })
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    return count === 1 ? name : `${name}#${count}`
  }
}
