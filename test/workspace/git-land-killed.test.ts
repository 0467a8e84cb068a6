import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { GitPoint } from '../../src/git/git.ts'
import { land } from '../../src/git/land.ts'
import { openRepository } from '../../src/git/repository.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { startProcess } from '../support/holdfast.ts'
import { GitWorld, listing, quickFolder } from './git-world.ts'

const DOOMED = builtFixture(new URL('./doomed-landing.ts', import.meta.url))
const MOST_POINTS = 60
const TOGETHER = 4

async function scene() {
  const world = new GitWorld()
  const repo = await world.start({ 'a.txt': 'a\n', 'c.txt': 'c\n', 'dir/b.txt': 'b\n', 'turns/into': 'file\n' })
  const files = { 'a.txt': 'new\n', 'dir/b.txt': null, 'x/y.txt': 'y\n', turns: null }
  const { commit } = await world.work(repo, files)
  const place = world.place()
  world.write({ turns: 'a file now\n' }, place.tree)
  const work = await world.take(repo, place)
  expect(work.commit).not.toBe(commit)
  const elsewhere = world.user(['commit-tree', '-p', 'HEAD', '-m', 'elsewhere', 'HEAD^{tree}'])
  return {
    world,
    from: repo.commit,
    to: work.commit,
    elsewhere,
    before: listing(world.project),
    after: listing(place.tree),
  }
}
type Scene = Awaited<ReturnType<typeof scene>>

interface Death {
  readonly point: string
  readonly survived: boolean
  readonly kind: string
  readonly tip: string
  readonly files: Record<string, string>
  readonly status: string
  readonly fsck: string
  readonly left: string[]
}

/** One copy of the repository: killed at a point, then redone by somebody else. */
async function dieAt(
  { world, from, to }: Scene,
  point: number | GitPoint,
  more: readonly string[] = [],
  meanwhile: (project: string) => void = () => {},
): Promise<Death> {
  const folder = quickFolder()
  const project = join(folder, 'project')
  execFileSync('cp', ['-a', world.project, project])
  const rooms = join(folder, 'rooms')
  const args = [DOOMED, project, rooms, from, to, String(point), ...more]
  const { stdout, stderr } = await startProcess(process.execPath, args, world.env).ended
  if (stdout === '') throw new Error(stderr)
  meanwhile(project)
  const git = { ...world.git, rooms }
  const repo = await openRepository(git, project)
  const end = await land(git, repo, { target: 'refs/heads/main', from, to, runId: 'run_1' })
  return {
    point: stdout.trim(),
    survived: stdout.includes('survived'),
    kind: end.kind === 'ready' ? end.code : end.kind,
    tip: world.user(['rev-parse', 'main'], project),
    files: listing(project),
    status: world.status(project),
    fsck: world.user(['fsck', '--strict', '--no-dangling', '--no-progress'], project),
    left: ['holdfast', 'index.lock'].filter((name) => world.has(name, join(project, '.git'))),
  }
}

async function dieEverywhere(scenery: Scene, more: readonly string[], expected: object): Promise<string[]> {
  const points: string[] = []
  for (let nth = 1; nth < MOST_POINTS; nth += TOGETHER) {
    const deaths = await Promise.all(
      Array.from({ length: TOGETHER }, (_, offset) => dieAt(scenery, nth + offset, more)),
    )
    for (const death of deaths) {
      expect(death, death.point).toMatchObject({ status: '', fsck: '', left: [], ...expected })
      if (!death.survived) points.push(death.point)
    }
    if (deaths.some(({ survived }) => survived)) break
  }
  return points
}

describe('a landing that is killed by SIGKILL at every point, and redone', () => {
  test('has landed once and whole: branch, files, index [X2] [workspace/all-or-nothing]', async () => {
    const scenery = await scene()
    const { to, after } = scenery
    const points = await dieEverywhere(scenery, [], { kind: 'landed', tip: to, files: after })
    for (const name of [
      'locked',
      'looked',
      'staged',
      'begun',
      'placing',
      'placed',
      'branch-moved',
      'index-installed',
      'unlocked',
    ]) {
      expect(points).toContain(`land/${name}`)
    }
  })

  test('goes back whole when the branch was moved meanwhile, and the branch stays where it is [X2] [X3]', async () => {
    const scenery = await scene()
    const { world, to, elsewhere, before } = scenery
    const isEither = expect.toSatisfy((tip) => tip === elsewhere || tip === to)
    const points = await dieEverywhere(scenery, [elsewhere], { tip: isEither })
    expect(points).toContain('back/placing')
    const late = await dieAt(scenery, points.indexOf('back/placing') + 2, [elsewhere])
    expect(late).toMatchObject({ kind: 'branch-moved', tip: elsewhere, files: before })
    expect(world.status()).toBe('')
  })

  test('never touches what the user did between the death and the redo [X3]', async () => {
    const scenery = await scene()
    const { world, from, to, before, after } = scenery
    const rest = { fsck: '', left: [] }
    const edit = (project: string) => world.write({ 'a.txt': 'mine\n' }, project)
    const [placed, moved, switched, committed] = await Promise.all([
      dieAt(scenery, 'land/placed', [], edit),
      dieAt(scenery, 'land/branch-moved', [], edit),
      dieAt(scenery, 'land/placed', [], (project) => void world.user(['switch', '-qc', 'other'], project)),
      dieAt(scenery, 'land/placed', [], (project) => {
        execFileSync('rm', [join(project, '.git/index.lock')])
        world.user(['commit', '-qam', 'mine'], project)
      }),
    ])
    expect(placed).toMatchObject({
      ...rest,
      kind: 'edited-meanwhile',
      tip: from,
      files: { ...before, 'a.txt': 'mine\n' },
    })
    expect(moved).toMatchObject({ ...rest, kind: 'landed', tip: to, files: { ...after, 'a.txt': 'mine\n' } })
    expect(moved.status).toBe('M a.txt')
    // The branch is free now: it moves alone, and the new one has its own files.
    expect(switched).toMatchObject({ ...rest, kind: 'landed', tip: to, files: before, status: '' })
    // What they committed is theirs, though it came from us; what they did not commit is gone again.
    expect(committed).toMatchObject({ ...rest, kind: 'branch-moved', status: '' })
    expect(committed.files).toMatchObject({ 'a.txt': 'new\n', 'c.txt': 'c\n' })
    expect(committed.tip).not.toBe(from)
  })
})
