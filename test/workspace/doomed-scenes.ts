/**
 * One daemon for several installations, each with a point of a workspace's life at which it waits. When all have come so far, it kills itself with
 * SIGKILL: so one death is a death at every one of these points.
 *
 *   node doomed-scenes.ts SCENES      (JSON: what to open, and where to wait)
 */
import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { registerThisProcess } from '../../src/workers/register.ts'

export interface DoomedScene {
  readonly url: string
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  readonly point: string
  /** The how-manieth time it comes there. */
  readonly nth: number
}

/** The others go on meanwhile; what this one holds it keeps. */
const FOR_EVER = new Promise<never>(() => {})

async function play({ url, home, env, point: at, nth }: DoomedScene, arrived: () => void): Promise<void> {
  const store = url.startsWith('sqlite:')
    ? await openSqliteStore({ path: url.slice('sqlite:'.length), clock, random })
    : await openPostgresStore({ url, clock, random })
  let met = 0
  const point = (name: string): void | Promise<void> => {
    if (name !== at) return
    met += 1
    if (met !== nth) return
    arrived()
    return FOR_EVER
  }
  const options = { store, clock, random, home, kind: 'daemon', leaseMs: 15_000, limits: {}, concurrency: 4 } as const
  const warn = (message: string) => void process.stderr.write(`${at}: ${message}\n`)
  const worker = await registerThisProcess({ ...options, graceMs: 1_000, warn, workspaces: { env, point } })
  await worker.start()
}

const scenes = JSON.parse(process.argv[2] ?? '[]') as DoomedScene[]
const waiting = new Set(scenes)
/** Longer than that nothing here takes; then whoever waits for the death is told which did not come so far. */
const DEADLINE_MS = 100_000
setTimeout(() => {
  process.stderr.write(`never came to ${[...waiting].map(({ point, nth }) => `${point} (${nth})`).join(', ')}\n`)
  process.exit(1)
}, DEADLINE_MS)
for (const scene of scenes) {
  void play(scene, () => {
    waiting.delete(scene)
    if (waiting.size === 0) process.kill(process.pid, 'SIGKILL')
  })
}
