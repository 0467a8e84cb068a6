import { mkdirSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { systemClock as clock } from '../../src/base/clock.ts'
import { systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId } from '../../src/base/ids.ts'
import { registerThisProcess } from '../../src/workers/register.ts'
import { isTerminal } from '../../src/runs/run.ts'
import type { Store } from '../../src/store/store.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { Installation, processesWith, startProcess, supervisorsOf, until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { reread, submitted } from '../support/world.ts'

const DOOMED = builtFixture(new URL('./doomed-worker.ts', import.meta.url))
/** More than a run's life has; the loop ends at the first process that survives. */
const MOST_POINTS = 400
const TOGETHER = 4

interface Scene {
  readonly place: Installation
  readonly url: string
  readonly store: Store
  readonly id: RunId
}

async function prepare(engine: TestEngine, entry: string): Promise<Scene> {
  const place = new Installation()
  mkdirSync(place.home, { recursive: true })
  const database = await engine.database()
  const { url } = database
  const store = await database.open()
  const [program, ...args] = place.append(entry)
  const { id } = await submitted(store, { request: { kind: 'command', argv: [program!, ...args], cwd: '/' } })
  return { place, url, store, id }
}

/** A daemon that nothing happens to settles whatever the doomed one left. */
async function recover({ store, place, id }: Scene): Promise<void> {
  const worker = await registerThisProcess({
    store,
    clock,
    random,
    home: place.home,
    kind: 'daemon',
    leaseMs: 15_000,
    limits: { total: 2 },
    concurrency: 2,
    graceMs: 1_000,
    warn: () => {},
  })
  await worker.start()
  await until('the run has ended', async () => (isTerminal((await reread(store, id)).state) ? true : undefined))
  await worker.drain(60_000)
}

async function dieAt(
  engine: TestEngine,
  nth: number,
): Promise<{ survived: boolean; state: string; effects: string[]; left: number }> {
  const scene = await prepare(engine, 'once')
  const { stdout } = await startProcess(process.execPath, [DOOMED, scene.url, scene.place.home, String(nth)], {}).ended
  await recover(scene)
  await assertInvariants(scene.store)
  const { state } = await reread(scene.store, scene.id)
  await scene.store.close()
  return {
    survived: stdout.includes('survived'),
    state,
    effects: scene.place.effects(),
    left: processesWith(`HOLDFAST_RUN=${scene.id}`).length,
  }
}

/** Every point is died at in one process already (transitions.ts); the deep run dies at each of them for real. */
const SAMPLED = { sqlite: 4, postgres: 8 }

describe.each(engines)('a real daemon on $name dies by SIGKILL', (engine) => {
  test('at every point of its store: the run succeeds, its effect happens once, no process is left [runs/one-terminal] [runs/paid-work-kept] [durable/acknowledged]', async () => {
    let deaths = 0
    const step = process.env.HOLDFAST_DEEP === undefined ? SAMPLED[engine.name] : 1
    for (let nth = 1; nth < MOST_POINTS; nth += TOGETHER * step) {
      const ends = await Promise.all(
        Array.from({ length: TOGETHER }, (_, offset) => dieAt(engine, nth + offset * step)),
      )
      ends.forEach((end, offset) => {
        expect(end, `killed at point ${nth + offset * step}`).toMatchObject({
          state: 'succeeded',
          effects: ['once'],
          left: 0,
        })
      })
      deaths += ends.filter(({ survived }) => !survived).length
      if (ends.some(({ survived }) => survived)) break
    }
    console.log(`killed a daemon at ${deaths} points of its store`)
    expect(deaths).toBeGreaterThan(30 / step)
  })
})

describe('a real supervisor dies by SIGKILL', () => {
  const MOMENTS = process.env.HOLDFAST_DEEP === undefined ? 8 : 200

  /** From before its first instruction until after its last, in steps of a few milliseconds. */
  test('at any moment of its life: at most one effect, one end, no process left, and lost only if it may have run [runs/one-terminal] [control/stop-means-stopped]', async () => {
    const ends: Record<string, number> = {}
    for (let moment = 0; moment < MOMENTS; moment++) {
      const scene = await prepare(engines[0]!, 'once')
      const recovered = recover(scene)
      const [supervisor] = await until('there is a supervisor', () => {
        const found = supervisorsOf(scene.place.home)
        return Promise.resolve(found.length > 0 ? found : undefined)
      })
      await new Promise((resolve) => setTimeout(resolve, (moment * 240) / MOMENTS))
      kill(supervisor!.pid)
      await recovered
      const run = await reread(scene.store, scene.id)
      await assertInvariants(scene.store)
      const effects = scene.place.effects()
      expect(effects.length).toBeLessThanOrEqual(1)
      expect([run.state, run.code]).toEqual(run.state === 'succeeded' ? ['succeeded', null] : ['failed', 'lost'])
      if (run.state === 'succeeded') expect(effects).toEqual(['once'])
      expect(processesWith(`HOLDFAST_RUN=${scene.id}`)).toEqual([])
      ends[`${run.state}, ${effects.length} effect`] = (ends[`${run.state}, ${effects.length} effect`] ?? 0) + 1
      await scene.store.close()
    }
    console.log(`killed a supervisor at ${MOMENTS} moments:`, ends)
  })
})

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was quicker.
  }
}
