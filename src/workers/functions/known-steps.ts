import { afterThisTurn } from '../../base/clock.ts'
import type { RunId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { stepsOfAll } from '../../runs/step.ts'
import type { Step } from '../../runs/step.ts'
import type { Store } from '../../store/store.ts'

interface Asker {
  readonly id: RunId
  readonly resolve: (steps: readonly Step[]) => void
  readonly reject: (error: unknown) => void
}

/** What runs had done before they were taken over: a worker that is lost may have held a thousand, and they come in few commits. */
export class KnownSteps {
  readonly #store: Store
  readonly #asking: Asker[] = []

  constructor(store: Store) {
    this.#store = store
  }

  of(id: RunId): Promise<readonly Step[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Step[]>()
    if (this.#asking.push({ id, resolve, reject }) === 1) afterThisTurn(() => void this.#readAll())
    return promise
  }

  async #readAll(): Promise<void> {
    const asking = this.#asking.splice(0)
    while (asking.length > 0) await this.#read(asking.splice(0, LIMITS.readTogether))
  }

  async #read(asking: readonly Asker[]): Promise<void> {
    try {
      const steps = Map.groupBy(
        await this.#store.read(stepsOfAll, [...new Set(asking.map(({ id }) => id))]),
        ({ runId }) => runId,
      )
      for (const { id, resolve } of asking) resolve(steps.get(id) ?? [])
    } catch (error) {
      for (const { reject } of asking) reject(error)
    }
  }
}
