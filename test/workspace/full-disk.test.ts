import { describe, expect, test } from 'vitest'

import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { engines } from '../support/engines.ts'
import type { TestEngine } from '../support/engines.ts'
import { smallDisk } from '../support/small-disk.ts'
import { GitWorld } from './git-world.ts'
import { WorkStage } from './work-stage.ts'

/** Where the disk of the repository and of our folders becomes full; the database is elsewhere. */
const POINTS: readonly WorkspacePoint[] = [
  'workspace/opened',
  'open/repository-made',
  'workspace/worked',
  'snapshot/looked',
  'workspace/prepared',
  'workspace/locked',
  'workspace/checked',
  'workspace/ended',
  'land/locked',
  'land/begun',
]

/** Mounting takes root. */
const available = process.getuid?.() === 0

/** Each waits for another try; the deep run takes all. */
function pointsOn(engine: TestEngine): readonly WorkspacePoint[] {
  if (process.env['HOLDFAST_DEEP'] !== undefined) return POINTS
  return engine.name === 'sqlite' ? ['open/repository-made', 'workspace/prepared', 'land/begun'] : ['workspace/ended']
}

describe.each(engines)('a disk that is full on $name', (engine) => {
  test.runIf(available).each(pointsOn(engine))(
    'from %s on: nothing of the person is touched half, and with room again everything is settled [workspace/all-or-nothing]',
    async (point) => {
      const disk = smallDisk('24m')
      if (disk === undefined) return
      const stage = await WorkStage.begin(engine, new GitWorld(disk.folder))
      const before = stage.seen()
      const id = await stage.submit('head -c 200000 /dev/urandom > big.bin; echo more >> a.txt', {
        check: { command: 'test -f big.bin' },
      })
      let filled = false
      const worker = await stage.worker((name) => {
        if (name !== point || filled) return
        filled = true
        disk.fill()
      })
      // What could not be carried out is handed on, and taken up again by whoever looks after things.
      await worker.perform(id)
      expect(filled).toBe(true)
      const then = stage.world.tip()
      if (then === before.tip) expect(stage.world.user(['diff', '--stat', 'HEAD'])).toBe('')
      disk.free()
      const looking = setInterval(() => void worker.tend(), 200)
      const { run, workspace } = await stage.over(id).finally(() => clearInterval(looking))
      const landed = workspace.state === 'landed'
      expect([run.state, workspace.state]).toEqual(landed ? ['succeeded', 'landed'] : ['failed', 'discarded'])
      if (!landed) expect(stage.seen()).toEqual(before)
      else expect([stage.world.user(['rev-list', '--count', 'main']), stage.world.status()]).toEqual(['2', ''])
      await stage.assertSound()
    },
  )
})
