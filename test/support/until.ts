/** However noisy the machine, nothing here may take longer; what waits this long has failed. */
const DEADLINE_MS = 60_000

/** Looks again until there is an answer; a deadline, not a sleep, decides that there is none. */
export async function until<T>(what: string, look: () => Promise<T | undefined>, deadlineMs = DEADLINE_MS): Promise<T> {
  const deadline = performance.now() + deadlineMs
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
