import type { Outcome } from '../method.ts'
import { comeToRest } from './turns.ts'

/**
 * World after world, each of which is printed, until nobody wants more: the one that is under way comes to its end. One that
 * breaks takes this process along: whatever it leaves behind, no other world finds it.
 */
export async function playShare(
  { first, step, howMany }: { readonly first: number; readonly step: number; readonly howMany: number },
  play: (seed: number) => Promise<Omit<Outcome, 'seed'>>,
): Promise<void> {
  const enough = new AbortController()
  process.stdin.on('end', () => enough.abort()).resume()
  for (let index = 0, seed = first; index < howMany && !enough.signal.aborted; index++, seed += step) {
    process.stdout.write(`${JSON.stringify({ seed, ...(await play(seed)) })}\n`)
    // What is said on standard input is heard between two worlds.
    await comeToRest()
  }
  process.exit(0)
}
