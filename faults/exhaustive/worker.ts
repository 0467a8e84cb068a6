/**
 * Plays one case of the table after the other and prints what came of each, a line of JSON; or says how many there are, and
 * a digest of them.
 *
 *   node worker.ts FIRST STEP HOW_MANY [PATTERN]     of those whose words it matches
 *   node worker.ts count
 */
import { becomeWorld } from '../simulation/one-thread.ts'
import { playShare } from '../simulation/share.ts'

const [, , first = '1', step = '1', howMany = '1', pattern = ''] = process.argv
await becomeWorld()
const { outcomeOf } = await import('../simulation/scenario.ts')
const { makeTemplate } = await import('../simulation/world.ts')
const { SCENARIOS } = await import('./scenarios.ts')
const { inWords, makeTable, playCase } = await import('./table.ts')
const template = await makeTemplate()
// The first one loads what is found loaded from then on.
await makeTable(template, SCENARIOS.slice(0, 1))
const table = (await makeTable(template)).filter((one) => new RegExp(pattern).test(inWords(one)))
if (first === 'count') {
  const { createHash } = await import('node:crypto')
  const cases = table.map((one) => `${inWords(one)} ${one.planned.amount}\n`).join('')
  process.stdout.write(`${table.length} ${createHash('sha256').update(cases).digest('hex').slice(0, 12)}\n`)
  process.exit(0)
}
const left = Math.ceil((table.length - Number(first) + 1) / Number(step))
const share = { first: Number(first), step: Number(step), howMany: Math.min(Number(howMany), left) }
await playShare(share, async (seed) => {
  const one = table[seed - 1]!
  const outcome = outcomeOf(await playCase(one, template))
  return { ...outcome, problems: outcome.problems.map((problem) => `${inWords(one)}: ${problem}`) }
})
