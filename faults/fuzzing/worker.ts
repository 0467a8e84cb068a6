/**
 * Feeds batches and tells of each, for `method.ts`: `worker.ts FIRST STEP COUNT PLACE`. It is a process of its own because a
 * crash or a loop without an end is what is looked for.
 */
import { rmSync } from 'node:fs'

import { Batches, Hang } from './batch.ts'

const [first, step, count] = process.argv.slice(2, 5).map(Number) as [number, number, number]
const place = process.argv[5]!
const batches = new Batches(place)
const over = new AbortController()
process.on('message', () => over.abort())
// Whoever ends it, nothing of it stays in memory.
process.on('exit', () => rmSync(place, { recursive: true, force: true }))
for (const end of ['SIGINT', 'SIGTERM', 'disconnect'] as const) process.on(end, () => process.exit(1))
const tell = (message: unknown) => new Promise((resolve) => process.send!(message, resolve))

for (let index = 0; index < count && !over.signal.aborted; index++) {
  const seed = first + index * step
  // Who dies without a further word died of this one.
  await tell({ begun: seed })
  try {
    await tell({ outcome: await batches.play(seed) })
  } catch (error) {
    if (!(error instanceof Hang)) throw error
    await tell({ hang: seed, why: error.message, fed: batches.fed })
    process.exit(1)
  }
}
await batches.close()
process.exit(0)
