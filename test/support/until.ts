/** However noisy the machine, nothing here may take longer; what waits this long has failed. */
const DEADLINE_MS = 60_000

const [SHORTEST_MS, LONGEST_MS] = [20, 500]

/**
 * Looks again until there is an answer; a deadline, not a sleep, decides that there is none. Between two looks it rests for as
 * long as a look takes: one that starts a program would otherwise take the time of those that are waited for.
 */
export async function until<T>(what: string, look: () => Promise<T | undefined>, deadlineMs = DEADLINE_MS): Promise<T> {
  const deadline = performance.now() + deadlineMs
  for (;;) {
    const begun = performance.now()
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    const restMs = Math.min(Math.max(SHORTEST_MS, performance.now() - begun), LONGEST_MS)
    await new Promise((resolve) => setTimeout(resolve, restMs))
  }
}
