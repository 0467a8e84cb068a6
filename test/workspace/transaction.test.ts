import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { RunId } from '../../src/base/ids.ts'
import { runEventsAfter } from '../../src/events/event.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { GIT_POINTS } from '../../src/git/git.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { sql } from '../../src/store/sql.ts'
import { run as change } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { askKeep, askLand, askRetry } from '../../src/workspace/ask.ts'
import { refOfRun } from '../../src/workspace/workspace.ts'
import { WORKSPACE_POINTS } from '../../src/workers/workspace/ports.ts'
import type { WorkspacePoint } from '../../src/workers/workspace/ports.ts'
import { usualEngines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { WorkStage } from './work-stage.ts'

const EDIT = 'echo more >> a.txt; echo new > new.txt; rm dir/b.txt'
const isDeep = process.env['HOLDFAST_DEEP'] !== undefined

/** So long that it does not help. */
function* triedForLong(): Transition<void> {
  yield* change(
    sql`update workspaces set decided_at = decided_at - ${LIMITS.settleForMs + 60_000}, settle_until = null`,
  )
}

describe('a run in a transaction', () => {
  test('that succeeds and passes its check lands as one commit, and the tree follows [workspace/all-or-nothing] [X1]', async () => {
    const stage = await WorkStage.begin()
    const base = stage.world.tip()
    const { run, workspace } = await stage.through(EDIT, { check: { command: 'test -f new.txt' } })
    expect([run.state, run.error]).toEqual(['succeeded', null])
    expect(workspace).toMatchObject({ state: 'landed', changedCount: 3, verdict: { verdict: 'passed', exitCode: 0 } })
    expect(stage.world.user(['rev-list', `${base}..main`]).split('\n')).toEqual([workspace.sha])
    expect(stage.world.status()).toBe('')
    expect(stage.world.read('new.txt')).toBe('new\n')
    expect(stage.world.has('dir/b.txt')).toBe(false)
    expect(existsSync(workspace.folder)).toBe(false)
    expect(stage.world.user(['for-each-ref', 'refs/holdfast'])).toBe('')
    await stage.assertSound()
  })

  test.each([
    { title: 'fails', script: `${EDIT}; exit 3`, check: 'true', code: 'exit' },
    { title: 'does not pass its check', script: EDIT, check: 'echo no; exit 1', code: 'validation' },
    { title: 'has a check that hangs', script: EDIT, check: 'sleep 60', code: 'validation' },
    { title: 'has a check that changes files', script: EDIT, check: 'echo x >> a.txt', code: 'validation' },
  ])(
    'that $title changes nothing, and its work can still be found [workspace/all-or-nothing] [X1]',
    async ({ script, check, code }) => {
      const stage = await WorkStage.begin()
      const before = stage.seen()
      const { run, workspace } = await stage.through(script, { check: { command: check }, checkTimeoutMs: 2_000 })
      expect(run).toMatchObject({ state: 'failed', code })
      expect(workspace).toMatchObject({ state: 'discarded', changedCount: 3 })
      expect(stage.seen()).toEqual(before)
      expect(stage.world.tip(refOfRun(run.id))).toBe(workspace.work)
      expect(stage.world.user(['show', `${workspace.work}:new.txt`])).toBe('new')
      expect(existsSync(workspace.folder)).toBe(false)
      await stage.assertSound()
    },
  )

  test('whose check is a file of the repository fails when it changes that file, and is checked by the old one otherwise [X1]', async () => {
    const stage = await WorkStage.begin()
    stage.world.write({ 'check.sh': '#!/bin/sh\ntest -f wanted.txt\n' })
    chmodSync(join(stage.world.project, 'check.sh'), 0o755)
    stage.world.commit({})
    for (const check of [{ file: 'check.sh' }, { command: './check.sh' }]) {
      const tampered = await stage.through('echo "exit 0" > check.sh', { check })
      expect(tampered.run).toMatchObject({ state: 'failed', code: 'validation' })
      expect(tampered.workspace.verdict).toMatchObject({ verdict: 'not_validated' })
    }
    const honest = await stage.through('echo yes > wanted.txt', { check: { file: 'check.sh' } })
    expect(honest.workspace).toMatchObject({ state: 'landed', verdict: { verdict: 'passed' } })
  })

  test('is not started when its check cannot be: the configuration is wrong, and says so', async () => {
    const stage = await WorkStage.begin()
    stage.world.commit({ 'plain.sh': 'exit 0\n' })
    const before = stage.seen()
    for (const check of [{ file: 'plain.sh' }, { file: 'missing.sh' }, { command: './plain.sh' }]) {
      const id = await stage.submit('touch "$HOME/started"', { check })
      await (await stage.worker()).perform(id)
      expect(await stage.run(id)).toMatchObject({
        state: 'failed',
        code: 'spawn',
        error: expect.stringMatching(/check/),
      })
    }
    expect(existsSync(join(stage.world.env['HOME']!, 'started'))).toBe(false)
    expect(stage.seen()).toEqual(before)
    await stage.assertSound()
  })

  test('that was discarded leaves nothing in the repository when its time is over, and the record stays [X5]', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit(`${EDIT}; exit 1`, { keepMs: 1 })
    const worker = await stage.worker()
    await worker.perform(id)
    const swept = await until('its time is over', async () => {
      await worker.tend()
      const workspace = await stage.workspace(id)
      return workspace.sweptAt === null ? undefined : workspace
    })
    expect(swept).toMatchObject({ state: 'discarded', changed: ['a.txt', 'dir/b.txt', 'new.txt'] })
    await until('nothing is left', async () =>
      stage.world.user(['for-each-ref', 'refs/holdfast']) === '' && !existsSync(swept.folder) ? true : undefined,
    )
    const events = await stage.store.read(runEventsAfter, id, 0, 100)
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['workspace.discarded', 'workspace.swept']))
    await stage.assertSound()
  })

  test('whose repository is gone when it is to land is in quarantine, and lands when a person tries again [X4]', async () => {
    const stage = await WorkStage.begin()
    const away = `${stage.world.project}.away`
    const id = await stage.submit(EDIT)
    const worker = await stage.worker((name) => {
      if (name === 'workspace/ended' && !existsSync(away)) renameSync(stage.world.project, away)
    })
    await worker.perform(id)
    const { run, workspace } = await stage.over(id)
    expect([run.state, workspace.state, workspace.cameFrom]).toEqual(['succeeded', 'quarantined', 'decided'])
    renameSync(away, stage.world.project)
    await stage.store.apply(askRetry, id, { by: 'a person' })
    await (await stage.worker()).settleWorkspace(id)
    expect((await stage.workspace(id)).state).toBe('landed')
    expect([stage.world.user(['rev-list', '--count', 'main']), stage.world.status()]).toEqual(['2', ''])
    await stage.assertSound()
  })

  test('that a person let land, and whose landing fails for good, is in quarantine and holds its repository no more [X4]', async () => {
    const stage = await WorkStage.begin()
    const { world, store } = stage
    world.write({ 'c.txt': 'not committed\n' })
    const { run, workspace } = await stage.through(EDIT)
    expect(workspace).toMatchObject({ state: 'ready' })
    world.write({ 'c.txt': 'c\n' })
    // Where git writes down how a branch moved there is a folder: it will never move it.
    const log = join(world.project, '.git/logs/refs/heads/main')
    renameSync(log, `${log}.away`)
    mkdirSync(join(log, 'in-the-way'), { recursive: true })
    writeFileSync(join(log, 'in-the-way/file'), '')
    await store.apply(askLand, run.id, { by: 'a person' })
    const worker = await stage.worker()
    await worker.settleWorkspace(run.id)
    expect(await stage.workspace(run.id)).toMatchObject({ state: 'decided', wish: 'land', landing: true })
    await store.apply(triedForLong)
    await worker.settleWorkspace(run.id)
    expect(await stage.workspace(run.id)).toMatchObject({
      state: 'quarantined',
      cameFrom: 'decided',
      wish: null,
      landing: false,
      reason: expect.stringContaining('update-ref ended with'),
    })
    rmSync(log, { recursive: true })
    renameSync(`${log}.away`, log)
    const other = await stage.through('echo other > other.txt')
    expect(other.workspace.state).toBe('landed')
    expect(await store.apply(askRetry, run.id, { by: 'a person' })).toMatchObject({ kind: 'asked' })
    await worker.settleWorkspace(run.id)
    // The branch has gone on: it waits, and nothing is lost.
    expect((await stage.workspace(run.id)).state).toBe('ready')
    await stage.assertSound()
  })

  test('that a person lets land, and whose check can never be run again, is ready as before, and can be kept [X4]', async () => {
    const stage = await WorkStage.begin()
    const { world, store } = stage
    world.commit({ '.gitignore': 'linked\n' })
    world.write({ 'linked/one.txt': '1\n' })
    const id = await stage.submit('echo new > new.txt', { link: ['linked'], check: { command: 'test -f new.txt' } })
    const moving = await stage.worker((name) => {
      if (name === 'workspace/ended') world.commit({ 'c.txt': 'by a person\n' })
    })
    await moving.perform(id)
    expect((await stage.over(id)).workspace.state).toBe('ready')
    const worker = await stage.worker()
    rmSync(join(world.project, 'linked'), { recursive: true })
    await store.apply(askLand, id, { by: 'a person' })
    await worker.settleWorkspace(id)
    expect(await stage.workspace(id)).toMatchObject({ state: 'ready', wish: 'land' })
    await store.apply(triedForLong)
    await worker.settleWorkspace(id)
    const error = expect.stringContaining('git/no-such-extra')
    expect(await stage.workspace(id)).toMatchObject({ state: 'ready', wish: null, landing: false, error })
    expect(await store.apply(askKeep, id, { by: 'a person' }, 'mine')).toMatchObject({ kind: 'asked' })
    await worker.settleWorkspace(id)
    expect((await stage.workspace(id)).state).toBe('kept')
    await stage.assertSound()
  })

  test('that changed nothing lands nothing, and is checked all the same', async () => {
    const stage = await WorkStage.begin()
    const before = stage.seen()
    const { workspace } = await stage.through('true', { check: { command: 'echo looked' } })
    expect(workspace).toMatchObject({ state: 'landed', changedCount: 0, verdict: { output: 'looked' } })
    expect(stage.seen()).toEqual(before)
  })

  test('whose branch moves while it is checked is put on top of it once more, and checked there', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit(EDIT, { check: { command: 'ls' } })
    let moved = false
    const worker = await stage.worker((name) => {
      if (name !== 'workspace/check-ended' || moved) return
      moved = true
      stage.world.commit({ 'other.txt': 'by a person\n' })
    })
    await worker.perform(id)
    const { workspace } = await stage.over(id)
    expect(workspace.state).toBe('landed')
    expect(stage.world.user(['log', '--format=%s', '-3']).split('\n')).toEqual(['Work of command', 'change', 'first'])
    expect(stage.world.user(['rev-parse', `${workspace.sha}^`])).toBe(workspace.checkedOn)
    expect(stage.world.status()).toBe('')
  })

  test('that cannot be put on top of what a person did meanwhile is ready, and nothing is lost [X3]', async () => {
    const stage = await WorkStage.begin()
    const id = await stage.submit('echo theirs > a.txt')
    const worker = await stage.worker((name) => {
      if (name === 'workspace/worked') stage.world.commit({ 'a.txt': 'by a person\n' })
    })
    await worker.perform(id)
    const { run, workspace } = await stage.over(id)
    expect(run.state).toBe('succeeded')
    expect(workspace).toMatchObject({ state: 'ready', conflicts: ['a.txt'] })
    expect(stage.world.read('a.txt')).toBe('by a person\n')
    expect(stage.world.user(['show', `${refOfRun(id)}:a.txt`])).toBe('theirs')
    await stage.assertSound()
  })
})

/** In the order of a run's life; what comes after the decision can not be cancelled any more. */
const BEFORE: readonly WorkspacePoint[] = [
  'workspace/opened',
  ...GIT_POINTS.filter((name) => name.startsWith('open/')),
  'workspace/active',
  'workspace/worked',
  ...GIT_POINTS.filter((name) => name.startsWith('snapshot/')),
  ...WORKSPACE_POINTS.slice(
    WORKSPACE_POINTS.indexOf('workspace/prepared'),
    WORKSPACE_POINTS.indexOf('workspace/ended'),
  ),
]
const AFTER: readonly WorkspacePoint[] = [
  'workspace/ended',
  'land/locked',
  'land/placing',
  'land/branch-moved',
  'workspace/landed',
]

async function cancelledAt(stage: WorkStage, point: WorkspacePoint) {
  const id = await stage.submit(EDIT, { check: { command: 'test -f new.txt' } })
  let answer: string | undefined
  const worker = await stage.worker(async (name) => {
    if (name !== point || answer !== undefined) return
    answer = (await stage.store.apply(cancelRun, id, { by: 'a person' })).kind
  })
  await worker.perform(id)
  const ended = await stage.over(id).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${stage.warnings.join('; ')}`)
  })
  return { id, answer, ...ended }
}

/** The deep run takes all of them, on both engines; what the store decides is the same on either, and the contract's. */
const some = (points: readonly WorkspacePoint[]) => points.filter((_, at) => isDeep || at % 3 === 0)

describe.each(usualEngines)('a cancel on $name', (engine) => {
  test.each(some(BEFORE))(
    'at %s wins: nothing lands, the tree is as before [workspace/all-or-nothing] [X2]',
    async (point) => {
      const stage = await WorkStage.begin(engine)
      const before = stage.seen()
      const { run, answer, workspace } = await cancelledAt(stage, point)
      expect(answer).toBe('requested')
      expect(run).toMatchObject({ state: 'cancelled', result: null })
      expect(workspace).toMatchObject({ state: 'discarded', reason: 'its run was cancelled' })
      expect(stage.seen()).toEqual(before)
      expect(existsSync(workspace.folder)).toBe(false)
      await stage.assertSound()
    },
  )

  test.each(some(AFTER))('at %s comes too late: the work has landed, once [runs/one-terminal]', async (point) => {
    const stage = await WorkStage.begin(engine)
    const { run, answer, workspace } = await cancelledAt(stage, point)
    expect(answer).toBe('already-terminal')
    expect([run.state, workspace.state]).toEqual(['succeeded', 'landed'])
    expect(stage.world.user(['rev-list', '--count', 'main'])).toBe('2')
    expect(stage.world.status()).toBe('')
    await stage.assertSound()
  })

  test('against success at the decision: whoever wins, the branch has moved exactly if the run succeeded [X2]', async () => {
    const ROUNDS = isDeep ? 60 : 3
    const ends: Record<string, number> = {}
    for (let round = 0; round < ROUNDS; round++) {
      const stage = await WorkStage.begin(engine)
      const before = stage.seen()
      const id = await stage.submit(EDIT)
      let cancel: Promise<unknown> | undefined
      // Let go at the same moment as the end of the run: either of them can be first.
      const worker = await stage.worker((name) => {
        if (name !== 'workspace/checked') return
        const late = async () => {
          for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve))
          return stage.store.apply(cancelRun, id, { by: 'a person' })
        }
        cancel = late()
      })
      await worker.perform(id)
      await cancel
      const { run, workspace } = await stage.over(id)
      if (run.state === 'succeeded') expect(workspace.state).toBe('landed')
      else expect([run.state, workspace.state, stage.seen()]).toEqual(['cancelled', 'discarded', before])
      expect(stage.world.user(['rev-list', '--count', 'main'])).toBe(run.state === 'succeeded' ? '2' : '1')
      ends[run.state] = (ends[run.state] ?? 0) + 1
      await stage.assertSound()
    }
    console.log(`a cancel against a success, ${ROUNDS} times on ${engine.name}:`, ends)
  })
})

describe.each(usualEngines)('several transactions on one repository on $name', (engine) => {
  test('work side by side and land one after the other, each checked on top of the one before', async () => {
    const stage = await WorkStage.begin(engine)
    const count = isDeep ? 8 : 4
    const ids: RunId[] = []
    // Each check sees whole commits only, and as many files as there are commits.
    const check = { command: 'test "$(ls made | wc -l)" = "$(cat made/* | sort -u | wc -l)"; ls made' }
    for (let each = 0; each < count; each++)
      ids.push(await stage.submit(`mkdir -p made; echo ${each} > made/${each}`, { check }))
    const worker = await stage.worker()
    await worker.start()
    const seen: number[] = []
    for (const id of ids) {
      const { workspace } = await stage.over(id)
      expect(workspace.state).toBe('landed')
      seen.push(workspace.verdict?.output.split('\n').length ?? 0)
    }
    await worker.settled()
    expect(stage.world.user(['rev-list', '--count', 'main'])).toBe(String(count + 1))
    expect(stage.world.user(['ls-files', 'made']).split('\n')).toHaveLength(count)
    expect(stage.world.status()).toBe('')
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => index + 1))
    await stage.assertSound()
  })
})
