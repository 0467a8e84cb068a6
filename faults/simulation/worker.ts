/**
 * Simulates one world after the other and prints what came of each, a line of JSON; or looks for the shortest way to what is
 * wrong with one.
 *
 *   node worker.ts FIRST_SEED STEP HOW_MANY
 *   node worker.ts shrink SEED
 */
import { becomeWorld } from './one-thread.ts'
import { playShare } from './share.ts'

/** The first world loads what the others find loaded. */
const WARM_UP_SEED = 0

const [, , first = '1', step = '1', howMany = '1'] = process.argv
await becomeWorld()
const { outcomeOf, simulate } = await import('./scenario.ts')
const { makeTemplate } = await import('./world.ts')
const template = await makeTemplate()
await simulate(WARM_UP_SEED, template)
if (first === 'shrink') {
  process.stdin.resume().on('end', () => process.exit(0))
  const { shortest } = await import('./shrink.ts')
  const seed = Number(step)
  process.stdout.write(`${await shortest(seed, (plan) => simulate(seed, template, plan))}\n`)
  process.exit(0)
}
const share = { first: Number(first), step: Number(step), howMany: Number(howMany) }
await playShare(share, async (seed) => outcomeOf(await simulate(seed, template)))
