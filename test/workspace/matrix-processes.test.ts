import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { Installation, processesWith, startProcess, supervisorsOf, until } from '../support/holdfast.ts'
import type { Running } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { leaves } from './matrix.ts'
import { WorkStage } from './work-stage.ts'

const DOOMED = builtFixture(new URL('../crash/doomed-workspace.ts', import.meta.url))

/** The command line as a person has it, in their own repository. */
class Foreground extends Installation {
  readonly repo = new Repository({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  readonly mark = join(this.home, '..', 'mark')

  run1(script: string): Running {
    const files = ['--workspace', this.repo.folder, '--workspace-mode', 'transaction', '--check', 'test -f new.txt']
    return this.start(['run', ...files, '--', 'sh', '-ec', script])
  }

  working(): Promise<true> {
    return until('it is in the middle of its work', () => Promise.resolve(existsSync(this.mark) ? true : undefined))
  }
}

const kill = (pids: readonly number[]) => pids.forEach((pid) => process.kill(pid, 'SIGKILL'))

interface Killed {
  readonly title: string
  readonly who: (scene: Foreground, running: Running) => readonly number[]
  /** Whether the work goes on without those that were killed. */
  readonly goesOn: boolean
}

const KILLED: readonly Killed[] = [
  { title: 'the command line', who: (_, { pid }) => [pid], goesOn: true },
  { title: 'its supervisor', who: ({ home }) => supervisorsOf(home).map(({ pid }) => pid), goesOn: false },
  {
    title: 'both',
    who: ({ home }, { pid }) => [pid, ...supervisorsOf(home).map((each) => each.pid)],
    goesOn: false,
  },
]

describe('in the middle of a run', () => {
  test.each(KILLED)(
    'SIGKILL for $title: half of the work never lands, and the next run on the repository settles it first [X1] [X4] [workspace/all-or-nothing]',
    async ({ who, goesOn }) => {
      const scene = new Foreground()
      const { repo } = scene
      const [before, gate] = [repo.state, scene.gate()]
      const script = `echo half >> a.txt; touch ${scene.mark}; while ! test -e ${gate.path}; do sleep 0.05; done; echo one > new.txt`
      const first = scene.run1(script)
      await scene.working()
      const killed = who(scene, first)
      expect(killed.length).toBeGreaterThan(0)
      kill(killed)
      if (!goesOn)
        await until('nothing of it runs', () => Promise.resolve(processesWith(gate.path).length === 0 || undefined))
      expect(repo.state).toBe(before)
      gate.open()
      const second = await scene.run1('echo again > b.txt; echo one > new.txt').ended
      expect((await first.ended).code).not.toBe(0)
      expect(second).toMatchObject({ code: 0 })
      await until('both are settled', async () => {
        const all = await scene.json<readonly { readonly state: string }[]>(['workspace', 'list'])
        return all.every(({ state }) => ['landed', 'discarded', 'ready'].includes(state)) || undefined
      })
      const ours = repo.git('log', '--format=%s', '--grep=Holdfast-Run').split('\n').filter(Boolean)
      expect([ours.length, repo.git('status', '--porcelain')]).toEqual([goesOn ? 2 : 1, ''])
      expect(repo.read('a.txt')).toBe(goesOn ? 'a\nhalf\n' : 'a\n')
      expect(existsSync(join(repo.folder, '.git', 'index.lock'))).toBe(false)
      repo.git('fsck', '--strict')
    },
  )
})

describe('eight transactions on one repository', () => {
  test('whose daemons are killed again and again all land, one after the other, each once', async () => {
    const stage = await WorkStage.begin()
    const ids: RunId[] = []
    const check = { command: 'test "$(ls made | wc -l)" = "$(cat made/* | sort -u | wc -l)"' }
    for (let each = 0; each < 8; each++) {
      const script = `echo ${each} >> ${stage.world.folder}/ran; mkdir -p made; echo ${each} > made/${each}`
      ids.push(await stage.submit(script, { check }))
    }
    const start = (point: string, nth = '1') =>
      startProcess(process.execPath, [DOOMED, stage.database.url, stage.home, point, nth], stage.world.env).ended
    for (const [point, nth] of [
      ['workspace/locked', '2'],
      ['land/placed', '1'],
      ['workspace/checked', '3'],
    ] as const) {
      expect(await start(point, nth), point).toMatchObject({ code: null })
    }
    expect(await start('-')).toMatchObject({ code: 0, stdout: expect.stringContaining('survived') })
    for (const id of ids) expect((await stage.over(id)).workspace.state).toBe('landed')
    expect(stage.world.user(['rev-list', '--count', 'main'])).toBe('9')
    expect(stage.world.user(['ls-files', 'made']).split('\n')).toHaveLength(8)
    expect(stage.world.status()).toBe('')
    expect(readFileSync(join(stage.world.folder, 'ran'), 'utf8').trim().split('\n').toSorted()).toEqual([
      '0',
      '1',
      '2',
      '3',
      '4',
      '5',
      '6',
      '7',
    ])
    // A daemon that ends sweeps no more: that is the next one's.
    await (await stage.worker()).start()
    await leaves(stage, [], ids[0]!)
    await stage.assertSound()
  })
})
