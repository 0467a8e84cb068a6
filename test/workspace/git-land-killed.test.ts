import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { Git, GitPoint } from '../../src/git/git.ts'
import { land } from '../../src/git/land.ts'
import { openRepository } from '../../src/git/repository.ts'
import { builtFixture } from '../support/built-fixture.ts'
import { startProcess } from '../support/holdfast.ts'
import { REAL_GIT, trapGit } from './git-trap.ts'
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

/** One copy of the repository, in which a landing was killed at a point, and how to do it again. */
async function deadAt({ world, from, to }: Scene, point: number | GitPoint, more: readonly string[] = []) {
  const folder = quickFolder()
  const project = join(folder, 'project')
  execFileSync('cp', ['-a', world.project, project])
  const rooms = join(folder, 'rooms')
  const args = [DOOMED, project, rooms, from, to, String(point), ...more]
  const { stdout, stderr } = await startProcess(process.execPath, args, world.env).ended
  if (stdout === '') throw new Error(stderr)
  const redo = async (env: Git['env'] = world.env) => {
    const git = { ...world.git, rooms, env }
    const repo = await openRepository(git, project)
    return land(git, repo, { target: 'refs/heads/main', from, to, runId: 'run_1' })
  }
  return { folder, project, last: stdout.trim(), redo }
}

/** Killed at a point, then redone by somebody else. */
async function dieAt(
  scenery: Scene,
  point: number | GitPoint,
  more: readonly string[] = [],
  meanwhile: (project: string) => void = () => {},
): Promise<Death> {
  const { world } = scenery
  const { project, last, redo } = await deadAt(scenery, point, more)
  meanwhile(project)
  const end = await redo()
  return {
    point: last,
    survived: last.includes('survived'),
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

  test('goes back in the tree that it died in, though the branch is checked out in another one by then [X3]', async () => {
    const scenery = await scene()
    const { world, to, before, after } = scenery
    const { folder, project, redo } = await deadAt(scenery, 'land/moving')
    const other = join(folder, 'other')
    world.user(['switch', '-qc', 'wip'], project)
    world.user(['worktree', 'add', '-q', other, 'main'], project)
    expect(await redo()).toEqual({ kind: 'landed', followed: true })
    expect([world.user(['rev-parse', 'main'], project), world.status(other)]).toEqual([to, ''])
    const { '.git': _, ...files } = listing(other)
    expect(files).toEqual(after)
    expect([listing(project), world.status(project)]).toEqual([before, ''])
    expect(['holdfast', 'index.lock'].filter((name) => world.has(name, join(project, '.git')))).toEqual([])
  })

  test('does not take a git that could not look for edits of the user [X3]', async () => {
    const scenery = await scene()
    const { world, to, after } = scenery
    const { project, redo } = await deadAt(scenery, 'land/moving')
    // As it ends where there is no room for a second index.
    const look = '[ "$1 $3 ${GIT_INDEX_FILE##*/}" = "update-index --refresh index.to" ]'
    const trap = trapGit({ world }, `${look} && exit 128`, '')
    // Until it has ended, or a person gives it up, it is tried again, whatever the failure.
    await expect(redo(trap.env)).rejects.toMatchObject({ code: 'git/failed', retry: { afterMs: 1_000 } })
    expect(await redo()).toEqual({ kind: 'landed', followed: true })
    expect([world.user(['rev-parse', 'main'], project), listing(project)]).toEqual([to, after])
    expect(world.status(project)).toBe('')
  })

  /** Dead, as a rule with the branch moved and the index not, and the user, who took its lock away, goes on in a branch with the work in it. */
  async function leftBehind(point: GitPoint = 'land/branch-moved') {
    const scenery = await scene()
    const { world } = scenery
    const dead = await deadAt(scenery, point)
    execFileSync('rm', [join(dead.project, '.git/index.lock')])
    world.user(['symbolic-ref', 'HEAD', 'refs/heads/other'], dead.project)
    world.user(['update-ref', 'refs/heads/other', scenery.to], dead.project)
    world.write({ 'mine.txt': 'mine\n' }, dead.project)
    return { ...scenery, ...dead }
  }

  test('and redone in a tree that has left the branch takes the lock of its index: what the user adds is refused or kept [X3]', async () => {
    const { world, folder, project, redo } = await leftBehind()
    // The user's command runs just before the new index gets its name, when a copy of the old one has been taken.
    const said = join(folder, 'said')
    const add = `env -i PATH="$PATH" HOME=${world.env['HOME']} ${REAL_GIT} -C ${project} add mine.txt 2> ${said}`
    const trap = trapGit({ world }, '[ "$1 $3" = "update-index --refresh" ]', add)
    expect(await redo(trap.env)).toEqual({ kind: 'landed', followed: false })
    expect(readFileSync(said, 'utf8')).toContain('index.lock')
    expect(world.status(project)).toBe('?? mine.txt')
    world.user(['add', 'mine.txt'], project)
    expect(world.status(project)).toBe('A  mine.txt')
    expect(world.has('.git/holdfast', project)).toBe(false)
  })

  test('and redone there leaves no hole where it died between taking a file and naming the other [X3]', async () => {
    const { world, project, redo } = await leftBehind('land/taken')
    expect(world.has('a.txt', project) && world.has('dir/b.txt', project)).toBe(false)
    expect(await redo()).toEqual({ kind: 'landed', followed: false })
    expect(world.status(project)).toBe('?? mine.txt')
  })

  test('and redone there waits for a git command of the user, as everywhere [X3]', async () => {
    const { world, project, redo, to } = await leftBehind()
    const status = world.status(project)
    const lock = join(project, '.git/index.lock')
    writeFileSync(lock, '')
    // Not `busy`, which is given up after a while: the branch has moved.
    await expect(redo()).rejects.toMatchObject({ code: 'git/index-locked', retry: { afterMs: 1_000 } })
    expect([world.has('.git/index.lock', project), world.status(project)]).toEqual([true, status])
    execFileSync('rm', [lock])
    expect(await redo()).toEqual({ kind: 'landed', followed: false })
    expect(world.user(['rev-parse', 'main'], project)).toBe(to)
    expect(world.status(project)).toBe('?? mine.txt')
  })
})
