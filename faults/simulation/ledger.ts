export interface Effect {
  readonly runId: string
  readonly actionId: string
  readonly tool: string
  readonly entry: string
}

/** What was done to the world, counted outside of everything that can crash. */
export class Ledger {
  readonly effects: Effect[] = []
  /** Actions of which somebody who looked was told that they are not there. */
  readonly absent = new Set<string>()

  write(effect: Effect): void {
    this.effects.push(effect)
  }

  timesOf(actionId: string): number {
    return this.effects.filter((effect) => effect.actionId === actionId).length
  }

  /** As one is told who looks whether it happened. */
  holds(actionId: string): boolean {
    const isThere = this.timesOf(actionId) > 0
    if (!isThere) this.absent.add(actionId)
    return isThere
  }

  /** The same thing, done again in the same run. */
  doubles(): string[] {
    const seen = new Map<string, number>()
    for (const { runId, tool, entry } of this.effects) {
      const key = `${runId} ${tool} ${entry}`
      seen.set(key, (seen.get(key) ?? 0) + 1)
    }
    return [...seen].filter(([, times]) => times > 1).map(([key, times]) => `${key}: ${times} times`)
  }
}
