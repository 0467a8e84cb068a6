import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { describeFiles } from '../../src/cli/runs/workspace-words.ts'
import type { WorkspaceView } from '../../src/cli/words/views.ts'
import { runEventsAfter } from '../../src/events/event.ts'
import type { GitPoint } from '../../src/git/git.ts'
import { sql } from '../../src/store/sql.ts'
import { run as change } from '../../src/store/transition.ts'
import { askDiscard, askKeep, askLand, askRetry } from '../../src/workspace/ask.ts'
import { viewWorkspace } from '../../src/workspace/view.ts'
import type { Workspace, WorkspaceRequest } from '../../src/workspace/workspace.ts'
import { until } from '../support/until.ts'
import { WorkStage } from './work-stage.ts'

const EDIT = 'echo new > a.txt; echo new > new.txt; rm dir/b.txt'
const person = { by: 'a person' }

/** A run whose landing was begun, and came no further than this. */
async function diedAt(point: GitPoint, more: (stage: WorkStage) => Partial<WorkspaceRequest> = () => ({})) {
  const stage = await WorkStage.begin()
  const before = stage.seen()
  const id = await stage.submit(EDIT, more(stage))
  const worker = await stage.worker((name) => {
    if (name === point) throw new Error('died')
  })
  await worker.perform(id)
  expect(await stage.workspace(id)).toMatchObject({ state: 'decided', error: 'died', landing: true })
  return { stage, before, id }
}

/** By another worker, without waiting for its time. */
async function settle(stage: WorkStage, id: RunId): Promise<Workspace> {
  await stage.store.apply(function* () {
    yield* change(sql`update workspaces set settle_until = null where run_id = ${id}`)
  })
  await (await stage.worker()).settleWorkspace(id)
  return stage.workspace(id)
}

/** As on a disk that is mounted after the daemon has started. */
async function quarantined({ stage, id }: Awaited<ReturnType<typeof diedAt>>): Promise<void> {
  const { project } = stage.world
  renameSync(project, `${project}.away`)
  expect(await settle(stage, id)).toMatchObject({ state: 'quarantined', cameFrom: 'decided', landing: false })
  renameSync(`${project}.away`, project)
}

/** Some of its files are in place. */
const place = ({ world }: WorkStage) => world.write({ 'a.txt': 'new\n', 'new.txt': 'new\n' })

const left = ({ world }: WorkStage) =>
  ['holdfast', 'index.lock'].filter((name) => existsSync(join(world.project, '.git', name)))

describe('a landing that was begun and ended in quarantine', () => {
  test('takes its files back before it is discarded [workspace/all-or-nothing] [X4]', async () => {
    const dead = await diedAt('land/begun')
    const { stage, before, id } = dead
    place(stage)
    expect(left(stage)).toEqual(['holdfast', 'index.lock'])
    await quarantined(dead)
    await stage.store.apply(askDiscard, id, person)
    const doomed = await stage.worker((name) => {
      if (name === 'back/taken') throw new Error('died')
    })
    await doomed.settleWorkspace(id)
    expect(await stage.workspace(id)).toMatchObject({ state: 'discarding', error: 'died' })
    const given = await settle(stage, id)
    expect(given).toMatchObject({ state: 'discarded', reason: 'discarded by a person', error: null })
    expect(describeFiles(viewWorkspace(given) as WorkspaceView)).toContain('discarded; your tree is as it was')
    expect([stage.seen(), left(stage)]).toEqual([before, []])
    await stage.assertSound()
  })

  test('takes its files back before it is kept as a branch', async () => {
    const dead = await diedAt('land/begun')
    const { stage, before, id } = dead
    place(stage)
    await quarantined(dead)
    await stage.store.apply(askKeep, id, person, 'mine')
    expect(await settle(stage, id)).toMatchObject({ state: 'kept', keptAs: 'mine' })
    expect([stage.seen(), left(stage)]).toEqual([before, []])
    expect(stage.world.user(['show', 'mine:new.txt'])).toBe('new')
    await stage.assertSound()
  })

  test('has landed if the branch has it, whatever is asked for [workspace/all-or-nothing]', async () => {
    const dead = await diedAt('land/branch-moved')
    const { stage, id } = dead
    const { world, store } = stage
    await quarantined(dead)
    await store.apply(askKeep, id, person, 'mine')
    const { sha, ...refused } = await settle(stage, id)
    expect(refused).toMatchObject({ state: 'quarantined', wish: null, error: expect.stringContaining('has it') })
    await store.apply(askDiscard, id, person)
    expect(await settle(stage, id)).toMatchObject({ state: 'landed', reason: 'main had it already' })
    expect([world.tip(), world.status(), left(stage)]).toEqual([sha, '', []])
    expect(world.read('a.txt')).toBe('new\n')
    const events = await store.read(runEventsAfter, id, 0, 100)
    expect(events.filter(({ type }) => type === 'workspace.landed')).toHaveLength(1)
    await stage.assertSound()
  })
})

test.each([
  { where: 'before it looks whether it may', point: 'land/moving', isOut: true },
  { where: 'at the very last moment', point: 'land/branch-moving', isOut: true },
  { where: 'that nobody has checked out', point: 'land/branch-moving', isOut: false },
  { where: 'that was away at that moment', point: 'land/branch-moving', isOut: true, isAway: true },
])(
  'a worker that is paused in a landing moves no branch that was given up meanwhile, $where [X2]',
  async ({ point, isOut, isAway = false }) => {
    const stage = await WorkStage.begin()
    const { world, store } = stage
    const [{ files: atFirst }, base] = [stage.seen(), world.tip('main')]
    const id = await stage.submit(EDIT)
    const [paused, awake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const worker = await stage.worker((name) => {
      if (name === 'workspace/ended' && !isOut) world.user(['switch', '-q', '-c', 'elsewhere'])
      if (name !== point) return
      paused.resolve()
      return awake.promise
    })
    const performed = worker.perform(id)
    await paused.promise
    const before = { files: atFirst, tip: base, status: '' }
    // Its time is over, and the next one met something in the way.
    await store.apply(function* () {
      yield* change(sql`update workspaces set settle_until = 0, error = 'in the way' where run_id = ${id}`)
    })
    expect(await store.apply(askDiscard, id, person)).toMatchObject({ kind: 'asked' })
    if (isAway) world.user(['branch', '-q', '-m', 'main', 'away'])
    expect((await settle(stage, id)).state).toBe('discarded')
    if (isAway) world.user(['branch', '-q', '-m', 'away', 'main'])
    expect([stage.seen(), left(stage)]).toEqual([before, []])
    awake.resolve()
    await performed
    await worker.stop()
    expect([stage.seen(), left(stage), world.fsck()]).toEqual([before, [], ''])
    expect(world.tip('main')).toBe(base)
    expect((await stage.workspace(id)).state).toBe('discarded')
    await stage.assertSound()
  },
)

/** As a backup has it that was made before the discard. */
async function restore({ store }: WorkStage, { runId, state, sha, landing }: Workspace): Promise<void> {
  await store.apply(function* () {
    yield* change(sql`update workspaces set state = ${state}, sha = ${sha}, landing = ${landing ? 1 : 0}, reason = null,
      error = null, settled_at = null, keep_until = null, swept_at = null where run_id = ${runId}`)
  })
}

const GIVEN_UP_ONCE = { state: 'ready', landing: false, wish: null, reason: expect.stringContaining('was given up') }

test.each([
  { where: 'in a working tree', isOut: true },
  { where: 'where nobody has the branch checked out', isOut: false },
])(
  'what was discarded, and waits again in a restored database, does not land $where, and can be kept',
  async (each) => {
    const stage = await WorkStage.begin()
    const { world, store } = stage
    const id = await stage.submit(EDIT)
    const worker = await stage.worker((name) => {
      if (name === 'workspace/ended') world.write({ 'a.txt': 'mine\n' })
    })
    await worker.perform(id)
    const backup = await stage.workspace(id)
    expect(backup.state).toBe('ready')
    await store.apply(askDiscard, id, person)
    expect((await settle(stage, id)).state).toBe('discarded')
    await restore(stage, backup)
    world.user(['checkout', '-q', 'a.txt'])
    if (!each.isOut) world.user(['switch', '-q', '-c', 'elsewhere'])
    const before = stage.seen()
    await store.apply(askLand, id, person)
    expect(await settle(stage, id)).toMatchObject(GIVEN_UP_ONCE)
    expect([stage.seen(), left(stage)]).toEqual([before, []])
    expect((await stage.through('echo more > more.txt')).workspace.state).toBe('landed')
    await store.apply(askKeep, id, person, 'mine')
    expect(await settle(stage, id)).toMatchObject({ state: 'kept', keptAs: 'mine' })
    await stage.assertSound()
  },
)

describe('a landing that was begun in a working tree that never comes back', () => {
  async function stuck(point: GitPoint) {
    const dead = await diedAt(point, ({ world }) => {
      const root = join(world.folder, 'other')
      world.user(['switch', '-q', '-c', 'elsewhere'])
      world.user(['worktree', 'add', '-q', root, 'main'])
      return { root }
    })
    const { stage, id } = dead
    const other = join(stage.world.folder, 'other')
    renameSync(other, `${other}.away`)
    const error = expect.stringContaining(`holdfast workspace discard ${id}`)
    expect(await settle(stage, id)).toMatchObject({ state: 'decided', landing: true, error })
    return dead
  }

  test('is given up by a discard, and its repository is free again [X4]', async () => {
    const { stage, id } = await stuck('land/begun')
    expect(await stage.store.apply(askRetry, id, person)).toMatchObject({ kind: 'refused' })
    expect(await stage.store.apply(askDiscard, id, person)).toMatchObject({ kind: 'asked' })
    const given = await settle(stage, id)
    expect(given).toMatchObject({ state: 'discarded', landing: false })
    // What was put in place there nobody could look at.
    const warning = `its landing was begun in ${join(stage.world.folder, 'other')}, which is not there`
    expect(given.reason).toContain(warning)
    expect(describeFiles(viewWorkspace(given) as WorkspaceView)).not.toContain('as it was')
    const events = await stage.store.read(runEventsAfter, id, 0, 100)
    expect(events.find(({ type }) => type === 'workspace.discarded')?.data).toMatchObject({ reason: given.reason })
    // Whoever finds that tree again can work in it.
    expect(existsSync(join(stage.world.project, '.git/worktrees/other/index.lock'))).toBe(false)
    expect((await stage.through('echo more > more.txt')).workspace.state).toBe('landed')
    // Whatever is asked for next, it is still said.
    await stage.store.apply(askKeep, id, person, 'elsewhere')
    for (const asked of [await stage.workspace(id), await settle(stage, id)]) {
      expect(asked).toMatchObject({ state: 'discarded', reason: given.reason })
      expect(describeFiles(viewWorkspace(asked) as WorkspaceView)).not.toContain('as it was')
    }
    await stage.assertSound()
  })

  test('goes back when that tree is there after all, in a restored database', async () => {
    const { stage, id } = await stuck('land/begun')
    const { folder } = stage.world
    const [backup, other] = [await stage.workspace(id), join(folder, 'other')]
    stage.world.write({ 'a.txt': 'new\n', 'new.txt': 'new\n' }, `${other}.away`)
    await stage.store.apply(askDiscard, id, person)
    expect((await settle(stage, id)).state).toBe('discarded')
    await restore(stage, backup)
    expect(await settle(stage, id)).toMatchObject({ state: 'decided', error: expect.stringContaining('was given up') })
    renameSync(`${other}.away`, other)
    expect(await settle(stage, id)).toMatchObject(GIVEN_UP_ONCE)
    expect([stage.world.status(other), stage.world.read('a.txt', other)]).toEqual(['', 'a\n'])
    await stage.assertSound()
  })

  test('has landed if the branch has it, and that tree follows when it is back', async () => {
    const { stage, id } = await stuck('land/branch-moved')
    const { world, store } = stage
    const other = join(world.folder, 'other')
    await store.apply(askDiscard, id, person)
    const settled = await settle(stage, id)
    expect(settled).toMatchObject({ state: 'landed', landing: false, error: null })
    expect(settled.reason).toContain(`main had it already; its landing was begun in ${other}, which is not there`)
    expect(world.tip()).toBe(settled.sha)
    // Whoever sweeps that repository leaves what is needed for it.
    expect((await stage.through('echo more > more.txt')).workspace.state).toBe('landed')
    renameSync(`${other}.away`, other)
    expect((await stage.through('echo again > again.txt')).workspace.state).toBe('landed')
    const remains = join(world.project, '.git/worktrees/other/holdfast')
    await swept(stage, id, 'its tree follows', async () => !existsSync(remains))
    expect([world.status(other), world.read('a.txt', other)]).toEqual(['', 'new\n'])
    await swept(stage, id, 'nothing of it is left', async () => (await stage.workspace(id)).sweptAt !== null)
    await stage.assertSound()
  })

  /** By the next one that looks, without waiting for its time. */
  async function swept(stage: WorkStage, id: RunId, what: string, isSo: () => Promise<boolean>): Promise<void> {
    await stage.store.apply(function* () {
      yield* change(sql`update workspaces set keep_until = 0 where run_id = ${id} and swept_at is null`)
    })
    await (await stage.worker()).tend()
    await until(what, async () => ((await isSo()) ? true : undefined))
  }
})
