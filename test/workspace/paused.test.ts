import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { engines } from '../support/engines.ts'
import { startProcess, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'
import { WorkStage } from './work-stage.ts'

const DOOMED = builtFixture(new URL('../crash/doomed-workspace.ts', import.meta.url))
const LEASE_MS = 1_500

const start = (stage: WorkStage, home: string, point: string, how = 'kill'): Running =>
  startProcess(
    process.execPath,
    [DOOMED, stage.database.url, `${stage.home}-${home}`, point, '1', how, String(LEASE_MS)],
    stage.world.env,
  )

const isStopped = (pid: number) => / T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))

/** Before the decision and after it, and in the middle of the person's own tree. */
const POINTS: readonly WorkspacePoint[] = [
  'workspace/active',
  'snapshot/committed',
  'workspace/check-ended',
  'workspace/checked',
  'workspace/ended',
  'land/begun',
  'land/placing',
  'land/placed',
  'land/branch-moved',
  'land/unlocked',
]

/** Each takes a lease; the deep run has all of them. */
const OFTEN: Readonly<Record<string, readonly WorkspacePoint[]>> = {
  sqlite: ['snapshot/committed', 'workspace/checked', 'land/placing', 'land/branch-moved'],
  postgres: ['workspace/ended'],
}

const cases = engines.flatMap((engine) => {
  const points = process.env['HOLDFAST_DEEP'] === undefined ? OFTEN[engine.name]! : POINTS
  return points.map((point) => ({ engine, name: engine.name, point }))
})

describe('a worker that is paused for longer than its lease, and comes back after another one has gone on', () => {
  test.each(cases)(
    'at $point on $name changes nothing any more: the work lands once [runs/fenced] [X2]',
    async ({ engine, point }) => {
      const stage = await WorkStage.begin(engine)
      const ran = `${stage.home}-ran`
      const id = await stage.submit(`echo . >> ${ran}; echo more >> a.txt; echo new > new.txt; rm dir/b.txt`, {
        check: { command: 'test -f new.txt' },
      })
      const sleeper = start(stage, 'sleeper', point, 'stop')
      await until('it is paused', async () => isStopped(sleeper.pid) || undefined)
      const other = await start(stage, 'other', '-').ended
      expect(other).toMatchObject({ code: 0, stdout: expect.stringContaining('survived') })
      const landed = stage.seen()
      process.kill(sleeper.pid, 'SIGCONT')
      expect(await sleeper.ended).toMatchObject({ code: 0 })

      const { run, workspace } = await stage.over(id)
      expect([run.state, workspace.state]).toEqual(['succeeded', 'landed'])
      expect(stage.seen()).toEqual(landed)
      expect(stage.world.user(['rev-list', '--count', 'main'])).toBe('2')
      expect([stage.world.status(), stage.world.user(['for-each-ref', 'refs/holdfast'])]).toEqual(['', ''])
      expect(readFileSync(ran, 'utf8')).toBe('.\n')
      await stage.assertSound()
    },
  )
})
