import { loadConfig } from '../../src/config/load.ts'
import { replaySpool } from '../../src/hooks/spool.ts'
import { countRuns } from '../../src/runs/run.ts'
import { createRuntime } from '../../src/runtime.ts'
import type { Runtime } from '../../src/runtime.ts'
import { violations } from '../../test/support/invariants.ts'
import type { Room } from './room.ts'

/** On a busy machine a run takes a second. */
const SETTLED_MS = 30_000

/** A worker on a disk that is well: everything that is there comes to its end or waits for a person. Tells what is wrong. */
export async function settle({ home, config, folder }: Pick<Room, 'home' | 'config' | 'folder'>): Promise<string[]> {
  const environment = { PATH: process.env.PATH ?? '', HOME: folder }
  const runtime = await createRuntime({ home, environment, warn: () => {}, config: await loadConfig(config) })
  try {
    const warnings: string[] = []
    await replaySpool({ ...runtime, warn: (text) => void warnings.push(text) })
    const worker = await runtime.registerWorker('daemon', { concurrency: 2 })
    await worker.start()
    const isOver = await untilSettled(runtime)
    await worker.settled()
    await worker.drain(0)
    return [
      ...(isOver ? [] : ['a run does not come to its end']),
      ...warnings,
      ...(await runtime.store.check()),
      ...(await violations(runtime.store)),
    ]
  } finally {
    await runtime.close()
  }
}

async function untilSettled({ store }: Runtime): Promise<boolean> {
  const until = performance.now() + SETTLED_MS
  for (;;) {
    const counts = await store.read(countRuns)
    if (!counts.some(({ state }) => state === 'queued' || state === 'running')) return true
    if (performance.now() > until) return false
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
