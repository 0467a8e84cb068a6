import { readFileSync } from 'node:fs'

import { describe, expect, test, vi } from 'vitest'

import { GIT_POINTS } from '../../src/git/git.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { refOfRun } from '../../src/workspace/workspace.ts'
import { WORKSPACE_POINTS } from '../../src/workers/workspace/ports.ts'
import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { usualEngines } from '../support/engines.ts'
import { LONG_MS, assertDiscarded, assertLanded, eachDeath, isDeep, leaves, ranIn, share } from './matrix.ts'
import type { Dead, Death } from './matrix.ts'

/*
 * The crash matrix: a daemon that dies by SIGKILL at each point of the life of a workspace, and what the next one makes of it. What happens inside of a landing,
 * step by step, is in git-land-killed.test.ts; who is paused and comes back, in paused.test.ts; who is cancelled and not killed, in transaction.test.ts.
 */

const EDIT = 'echo more >> a.txt; echo new > new.txt; rm dir/b.txt'
const more = { check: { command: 'test -f new.txt' } }

const of = (folder: string) => GIT_POINTS.filter((name) => name.startsWith(`${folder}/`))
const from = (first: string, end: string) =>
  WORKSPACE_POINTS.slice(WORKSPACE_POINTS.indexOf(first as never), WORKSPACE_POINTS.indexOf(end as never))

/** In the order of the life of a run that succeeds. */
const BEFORE_DECISION: readonly WorkspacePoint[] = [
  'workspace/opened',
  ...of('open'),
  'workspace/active',
  'workspace/worked',
  ...of('snapshot'),
  ...from('workspace/prepared', 'workspace/ended'),
  // What the check left.
  'remove/aside',
]
const AFTER_DECISION: readonly WorkspacePoint[] = [
  'workspace/ended',
  ...of('land'),
  'workspace/landed',
  'workspace/settled',
  'workspace/swept',
]
/** Of one that fails: what is there is kept, then removed. */
const DISCARD: readonly WorkspacePoint[] = [
  'workspace/ended',
  ...of('snapshot'),
  'workspace/snapshot-kept',
  'remove/aside',
  'workspace/settled',
]
const SHADOW: readonly WorkspacePoint[] = ['workspace/opened', ...of('snapshot'), 'workspace/observed']

vi.setConfig({ testTimeout: LONG_MS })

// What the store does is the same on both.
describe.each(usualEngines)('a daemon that is killed on $name', (engine) => {
  test('wherever that is, a run that succeeds has run once and landed once [X2] [X4] [workspace/all-or-nothing]', async () => {
    const points = share([...BEFORE_DECISION, ...AFTER_DECISION], 4, 2)
    const deaths = points.map((point) => ({ point, engine, script: EDIT, more }))
    await eachDeath(deaths, (_, dead, settled) => assertLanded(dead, settled))
  })

  test('and whose run is cancelled before another one is there: nothing lands, unless it was decided [X2]', async () => {
    const cancel = async ({ stage, id }: Dead) => stage.store.apply(cancelRun, id, { by: 'a person' })
    const deaths = [
      ...share(BEFORE_DECISION, 4).map((point) => ({ point, lands: false })),
      ...share(AFTER_DECISION, 6).map((point) => ({ point, lands: true })),
    ].map((each) => ({ ...each, engine, script: EDIT, more, meanwhile: cancel }))
    await eachDeath(deaths, async ({ lands }, dead, settled) => {
      if (lands) return assertLanded(dead, settled)
      expect(settled.run.state).toBe('cancelled')
      await assertDiscarded(dead, settled)
    })
  })

  test('in the middle of a discard: everything is as before, and what was done can be brought back [X1] [X4]', async () => {
    const points = share(DISCARD, 2, 1)
    const deaths = points.map((point) => ({ point, engine, script: `${EDIT}; exit 3` }))
    await eachDeath(deaths, async (_, dead, settled) => {
      await assertDiscarded(dead, settled)
      expect(settled.workspace).toMatchObject({ changedCount: 3, reason: 'its run failed (exit)' })
      expect(dead.stage.world.user(['show', `${refOfRun(dead.id)}:new.txt`])).toBe('new')
    })
  })

  test('while it watches a run in its shadow: what it would have landed is said all the same, and nothing is touched [X5]', async () => {
    const deaths = share(SHADOW, 3, 1).map((point) => ({
      point,
      engine,
      // The first look is before the run, and it is the second one that counts.
      nth: point.startsWith('snapshot/') ? 2 : 1,
      script: EDIT,
      more: { ...more, mode: 'shadow' as const },
    }))
    await eachDeath(deaths, async (_, { stage, id, before }, { run, workspace }) => {
      expect([run.state, workspace.state, workspace.changedCount]).toEqual(['succeeded', 'would_land', 3])
      const { files, tip } = stage.seen()
      expect(tip).toBe(before.tip)
      expect(files).toEqual({ 'a.txt': 'a\nmore\n', 'c.txt': 'c\n', 'new.txt': 'new\n' })
      expect(readFileSync(ranIn(stage), 'utf8')).toBe('.\n')
      await leaves(stage, [], id)
      await stage.assertSound()
    })
  })
})

interface Doing extends Death {
  readonly title: string
  /** What becomes of the work; the person's part is looked at by `kept`. */
  readonly becomes: 'landed' | 'ready'
  readonly kept: (dead: Dead) => void
}

interface Meanwhile extends Pick<Doing, 'title' | 'meanwhile' | 'kept'> {
  /** A branch that moved before the decision is put on top of; afterwards the expected old value stands against it. */
  readonly undecided: Doing['becomes']
  readonly decided: Doing['becomes']
}

const DOINGS: readonly Meanwhile[] = [
  {
    title: 'commits something else',
    undecided: 'landed',
    decided: 'ready',
    meanwhile: ({ stage }) => stage.world.commit({ 'mine.txt': 'mine\n' }, 'mine'),
    kept: ({ stage: { world } }) => {
      expect(world.user(['log', '--format=%s', 'main'])).toContain('mine')
      expect([world.read('mine.txt'), world.status()]).toEqual(['mine\n', ''])
    },
  },
  {
    title: 'edits a file of the work',
    undecided: 'ready',
    decided: 'ready',
    meanwhile: ({ stage }) => stage.world.write({ 'a.txt': 'mine\n' }),
    kept: ({ stage: { world } }) => expect([world.read('a.txt'), world.status()]).toEqual(['mine\n', 'M a.txt']),
  },
  {
    title: 'stages an edit',
    undecided: 'ready',
    decided: 'ready',
    meanwhile: ({ stage: { world } }) => {
      world.write({ 'c.txt': 'mine\n' })
      world.user(['add', 'c.txt'])
    },
    kept: ({ stage: { world } }) => expect(world.user(['diff', '--cached', '--name-only'])).toBe('c.txt'),
  },
  {
    title: 'makes a file where a new one belongs',
    undecided: 'ready',
    decided: 'ready',
    meanwhile: ({ stage }) => stage.world.write({ 'new.txt': 'mine\n' }),
    kept: ({ stage: { world } }) => expect([world.read('new.txt'), world.status()]).toEqual(['mine\n', '?? new.txt']),
  },
  {
    title: 'switches to another branch and commits there',
    undecided: 'landed',
    decided: 'landed',
    meanwhile: ({ stage: { world } }) => {
      world.user(['switch', '-qc', 'other'])
      world.commit({ 'a.txt': 'other\n' }, 'other')
    },
    kept: ({ stage: { world } }) => {
      expect(world.user(['symbolic-ref', '--short', 'HEAD'])).toBe('other')
      expect([world.read('a.txt'), world.has('new.txt'), world.status()]).toEqual(['other\n', false, ''])
    },
  },
  {
    title: 'rewrites the branch',
    undecided: 'landed',
    decided: 'ready',
    meanwhile: ({ stage: { world } }) => world.user(['commit', '-q', '--amend', '--allow-empty', '-m', 'amended']),
    kept: ({ stage: { world } }) => expect(world.user(['log', '--format=%s', 'main'])).toMatch(/amended$/),
  },
]
describe('a person who, after the daemon was killed and before the next one,', () => {
  test('commits, edits, stages, switches or rewrites loses nothing of it, and the work lands or waits [X3]', async () => {
    const moments: readonly WorkspacePoint[] = ['workspace/prepared', 'workspace/check-ended', 'workspace/ended']
    const all = moments.flatMap((point) =>
      DOINGS.map((each) => ({
        ...each,
        point,
        becomes: BEFORE_DECISION.includes(point) ? each.undecided : each.decided,
      })),
    )
    // Each of them once, two at each moment.
    const some = all.filter((_, at) => isDeep || at % moments.length === Math.floor(at / DOINGS.length))
    const deaths = some.map((each): Doing => ({ ...each, script: EDIT, more }))
    await eachDeath(deaths, async ({ title, becomes: state, kept, point }, dead, { run, workspace }) => {
      const { stage, id } = dead
      expect([title, point, run.state, workspace.state]).toEqual([title, point, 'succeeded', state])
      kept(dead)
      await leaves(stage, state === 'ready' ? [refOfRun(id)] : [], id)
      if (state === 'ready') expect(stage.world.user(['show', `${refOfRun(id)}:new.txt`])).toBe('new')
      expect(stage.world.user(['rev-list', '--count', '--grep=Holdfast-Run', 'main'])).toBe(
        state === 'ready' ? '0' : '1',
      )
      await stage.assertSound()
    })
  })
})
