import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  appendFileSync,
  renameSync,
  openSync,
  writeSync,
  closeSync,
} from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import type { Git, GitPoint, Sha } from '../../src/git/git.ts'
import { land } from '../../src/git/land.ts'
import { putOnTop } from '../../src/git/on-top.ts'
import type { OpenedRepository } from '../../src/git/repository.ts'
import { AT, GitWorld, listing } from './git-world.ts'

const LANDED = { kind: 'landed', followed: true }

/** Lands, and does something at the nth time that a point is passed. */
function landAnd(world: GitWorld, repo: OpenedRepository, to: Sha, at: GitPoint, act: () => void, nth = 1) {
  let passed = 0
  const point = (name: GitPoint) => {
    if (name !== at) return
    passed += 1
    if (passed === nth) act()
  }
  const git: Git = { ...world.git, point }
  return land(git, repo, { target: 'refs/heads/main', from: repo.commit, to, runId: 'run_1' })
}

const die = () => {
  throw new Error('died')
}

function expectNothingLeft(world: GitWorld): void {
  expect(world.has('.git/holdfast')).toBe(false)
  expect(world.has('.git/index.lock')).toBe(false)
  expect(world.fsck()).toBe('')
}

async function scene(
  files: Readonly<Record<string, string | null>> = { 'a.txt': 'new\n', 'dir/b.txt': null, 'x/y.txt': 'y\n' },
) {
  const world = new GitWorld()
  const repo = await world.start()
  const { commit } = await world.work(repo, files)
  return { world, repo, commit, before: listing(world.project) }
}

describe('landing', () => {
  test('a branch that is checked out and clean moves, and the tree and the index follow [X1]', async () => {
    const { world, repo, commit } = await scene()
    writeFileSync(join(world.project, 'untracked.txt'), 'mine\n')
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect(world.tip()).toBe(commit)
    expect(world.status()).toBe('?? untracked.txt')
    expect(listing(world.project)).toEqual({
      'a.txt': 'new\n',
      'c.txt': 'c\n',
      'untracked.txt': 'mine\n',
      'x/y.txt': 'y\n',
    })
    expect(world.user(['reflog', '-1', '--format=%gs'])).toBe('holdfast: run run_1')
    expectNothingLeft(world)
    expect(await world.land(repo, commit)).toEqual(LANDED)
  })

  test('files become folders and folders become files, modes and links change', async () => {
    const world = new GitWorld()
    world.write({ file: 'f\n', 'folder/inner.txt': 'i\n', script: 'echo\n', 'private.txt': 'p\n' })
    symlinkSync('file', join(world.project, 'link'))
    const repo = await world.start({})
    chmodSync(join(world.project, 'private.txt'), 0o600)
    const place = await world.opened(repo)
    const at = (path: string) => join(place.tree, path)
    execFileSync('rm', ['-r', at('file'), at('folder'), at('link')])
    world.write(
      { 'file/deep/er.txt': 'now a folder\n', folder: 'now a file\n', link: 'now a file\n', 'private.txt': 'P\n' },
      place.tree,
    )
    chmodSync(at('script'), 0o755)
    symlinkSync('/outside/of/it', at('out'))
    const { commit } = await world.take(repo, place)
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect(listing(world.project)).toEqual({
      'file/deep/er.txt': 'now a folder\n',
      folder: 'now a file\n',
      link: 'now a file\n',
      out: '-> /outside/of/it',
      'private.txt': 'P\n',
      script: 'x echo\n',
    })
    expect(execFileSync('stat', ['-c', '%a', join(world.project, 'private.txt')], { encoding: 'utf8' }).trim()).toBe(
      '600',
    )
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })

  test('any byte in a name lands, and a change of case alone', async () => {
    const world = new GitWorld()
    const repo = await world.start({ 'Case.txt': 'c\n' })
    const place = await world.opened(repo)
    const odd = Buffer.concat([
      Buffer.from(`${place.tree}/`),
      Buffer.from('new\nline "q" \\ \x01 ü '),
      Buffer.from([0xff, 0xfe]),
    ])
    writeFileSync(odd, 'odd\n')
    renameSync(join(place.tree, 'Case.txt'), join(place.tree, 'case.txt'))
    const work = await world.take(repo, place)
    expect(work.changed).toEqual(['Case.txt', 'case.txt', String.raw`"new\nline \"q\" \\ \001 \303\274 \377\376"`])
    expect(await world.land(repo, work.commit)).toEqual(LANDED)
    expect(listing(world.project)).toEqual(listing(place.tree))
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })

  test('line ends in the tree are those that the attributes of the new commit ask for', async () => {
    const world = new GitWorld()
    const repo = await world.start({ '.gitattributes': '*.win text eol=crlf\n', 'a.win': 'one\r\n' })
    const { commit } = await world.work(repo, {
      '.gitattributes': '*.win text eol=crlf\n*.dos text eol=crlf\n',
      'a.win': 'two\r\n',
      'b.dos': 'b\n',
    })
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect(listing(world.project)).toMatchObject({ 'a.win': 'two\r\n', 'b.dos': 'b\r\n' })
    expect(world.user(['show', 'HEAD:a.win'])).toBe('two')
    expect(world.status()).toBe('')
  })

  test('a branch that nobody has checked out moves alone', async () => {
    const { world, repo, commit, before } = await scene()
    world.user(['switch', '-q', '-c', 'other'])
    writeFileSync(join(world.project, 'c.txt'), 'edited\n')
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: false })
    expect(world.tip()).toBe(commit)
    expect(listing(world.project)).toEqual({ ...before, 'c.txt': 'edited\n' })
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: false })
  })

  test('a branch that nobody has checked out and somebody has moved stays where it is [X3]', async () => {
    const { world, repo, commit } = await scene()
    const later = world.commit({ 'later.txt': 'l\n' })
    world.user(['switch', '-q', '-c', 'other'])
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'branch-moved' })
    expect(world.tip()).toBe(later)
  })

  test('a branch that another working tree has checked out moves with that tree', async () => {
    const { world, repo, commit, before } = await scene()
    world.user(['switch', '-q', '-c', 'other'])
    const linked = join(world.folder, 'linked')
    world.user(['worktree', 'add', '-q', linked, 'main'])
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect(world.status(linked)).toBe('')
    expect(listing(linked)).toMatchObject({ 'a.txt': 'new\n', 'x/y.txt': 'y\n' })
    expect(listing(world.project)).toEqual(before)
    expect(world.status()).toBe('')
  })

  test('a working tree that is not there keeps its branch where it is', async () => {
    const { world, repo, commit } = await scene()
    world.user(['switch', '-q', '-c', 'other'])
    world.user(['worktree', 'add', '-q', join(world.folder, 'linked'), 'main'])
    renameSync(join(world.folder, 'linked'), join(world.folder, 'unplugged'))
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'tree-missing' })
    expect(world.tip()).toBe(repo.commit)
  })

  test('a repository that was moved since, with a link where it was, is the same', async () => {
    const { world, repo, commit } = await scene()
    renameSync(world.project, `${world.project}.moved`)
    symlinkSync(`${world.project}.moved`, world.project)
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect([world.tip(), world.status()]).toEqual([commit, ''])
  })

  test('another repository where a working tree was is none of it, and stays as it is', async () => {
    const { world, repo, commit } = await scene()
    const linked = join(world.folder, 'linked')
    world.user(['switch', '-q', '-c', 'other'])
    world.user(['worktree', 'add', '-q', linked, 'main'])
    rmSync(linked, { recursive: true })
    world.user(['clone', '-q', '--shared', '-b', 'main', world.project, linked])
    const before = listing(linked)
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'tree-missing' })
    expect([world.tip(), world.user(['rev-parse', 'main'], linked)]).toEqual([repo.commit, repo.commit])
    expect(listing(linked)).toEqual(before)
  })
})

describe('what is not committed stays as it is, and the work waits [X3]:', () => {
  const OBSTACLES: [string, string, (world: GitWorld) => void][] = [
    ['an edited file', 'dirty', (world) => world.write({ 'c.txt': 'mine\n' })],
    [
      'an edited file of the same size and time',
      'dirty',
      ({ project }) => {
        execFileSync('sh', ['-c', 'touch -r a.txt ../ref; printf "A\n" > a.txt; touch -r ../ref a.txt'], {
          cwd: project,
        })
      },
    ],
    [
      'an edit that git was told not to look at',
      'dirty',
      (world) => {
        world.user(['update-index', '--assume-unchanged', 'a.txt'])
        world.write({ 'a.txt': 'mine\n' })
      },
    ],
    [
      'a staged change',
      'dirty',
      (world) => {
        world.write({ 'c.txt': 'mine\n' })
        world.user(['add', 'c.txt'])
        execFileSync('git', ['show', 'HEAD:c.txt'], { cwd: world.project })
        world.write({ 'c.txt': 'c\n' })
      },
    ],
    ['a removed file', 'dirty', ({ project }) => execFileSync('rm', [join(project, 'c.txt')])],
    ['a changed mode', 'dirty', ({ project }) => chmodSync(join(project, 'c.txt'), 0o755)],
    ['an untracked file where a new one belongs', 'in-the-way', (world) => world.write({ 'x/y.txt': 'mine\n' })],
    [
      'an ignored file where a new one belongs',
      'in-the-way',
      (world) => {
        world.write({ '.git/info/exclude': 'x/\n', 'x/y.txt': 'mine\n' })
      },
    ],
    [
      'a link where a new folder belongs',
      'in-the-way',
      ({ project, folder }) => {
        mkdirSync(join(folder, 'elsewhere'))
        symlinkSync(join(folder, 'elsewhere'), join(project, 'x'))
      },
    ],
    [
      'a merge in progress',
      'operation',
      (world) => {
        world.user(['branch', 'side'])
        world.user([
          'merge',
          '-q',
          '--no-commit',
          '--no-ff',
          '-s',
          'ours',
          world.user(['commit-tree', '-p', 'side', '-m', 'm', 'HEAD^{tree}']),
        ])
      },
    ],
    ['a sparse checkout', 'sparse', (world) => world.user(['sparse-checkout', 'set', 'dir'])],
    ['a split index', 'sparse', (world) => world.user(['update-index', '--split-index'])],
  ]

  test.each(OBSTACLES)('%s', async (_, code, obstruct) => {
    const { world, repo, commit } = await scene()
    obstruct(world)
    const [before, status] = [listing(world.project), world.status()]
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code })
    expect(world.tip()).toBe(repo.commit)
    expect(listing(world.project)).toEqual(before)
    expect(world.status()).toBe(status)
    expectNothingLeft(world)
  })

  test('a branch in the middle of a rebase', async () => {
    const world = new GitWorld()
    await world.start()
    world.commit({ 'second.txt': '2\n' })
    const repo = await world.open()
    const { commit } = await world.work(repo, { 'a.txt': 'new\n' })
    const env = { ...world.env, GIT_SEQUENCE_EDITOR: 'sed -i 1s/^pick/edit/' }
    execFileSync('git', ['rebase', '-q', '-i', 'HEAD~1'], { cwd: world.project, env, stdio: 'ignore' })
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'operation' })
    expect(world.tip()).toBe(repo.commit)
    expectNothingLeft(world)
  })

  test('a file that has to pass a filter', async () => {
    const world = new GitWorld()
    const repo = await world.start({ '.gitattributes': '*.bin filter=lfs\n', 'a.txt': 'a\n' })
    const { commit } = await world.work(repo, { 'big.bin': 'content\n' })
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'filter' })
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })

  test('a branch that moved, was removed, or has the work already', async () => {
    const { world, repo, commit } = await scene()
    const later = world.commit({ 'later.txt': 'l\n' })
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'ready', code: 'branch-moved' })
    expect(world.tip()).toBe(later)
    expect(await world.land(repo, commit, { target: 'refs/heads/none' })).toMatchObject({ code: 'branch-gone' })
    world.user(['reset', '-q', '--hard', commit])
    const beyond = world.commit({ 'beyond.txt': 'b\n' })
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect(world.tip()).toBe(beyond)
    expectNothingLeft(world)
  })

  test('a git command of the user that holds the index', async () => {
    const { world, repo, commit, before } = await scene()
    writeFileSync(join(world.project, '.git/index.lock'), '')
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'busy' })
    expect(world.has('.git/index.lock')).toBe(true)
    expect(listing(world.project)).toEqual(before)
    execFileSync('rm', [join(world.project, '.git/index.lock')])
    expect(await world.land(repo, commit)).toEqual(LANDED)
  })

  test('a stale lock of the branch is named', async () => {
    const { world, repo, commit, before } = await scene()
    writeFileSync(join(world.project, '.git/refs/heads/main.lock'), '')
    await expect(world.land(repo, commit)).rejects.toMatchObject({ code: 'git/ref-locked' })
    expect(listing(world.project)).toEqual(before)
    expect(world.tip()).toBe(repo.commit)
    execFileSync('rm', [join(world.project, '.git/refs/heads/main.lock')])
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expectNothingLeft(world)
  })
})

describe('while a landing puts files in place [X3]', () => {
  const FILES = { 'a.txt': 'new\n', 'c.txt': 'new\n', 'dir/b.txt': null, 'x/y.txt': 'y\n' }

  const EDITS: [string, (world: GitWorld) => void, Record<string, string>][] = [
    ['writes to a file', ({ project }) => appendFileSync(join(project, 'c.txt'), 'mine\n'), { 'c.txt': 'c\nmine\n' }],
    [
      'saves a file by a rename',
      (world) => {
        world.write({ '../saved': 'mine\n' })
        renameSync(join(world.folder, 'saved'), join(world.project, 'c.txt'))
      },
      { 'c.txt': 'mine\n' },
    ],
    ['makes a file where a new one belongs', (world) => world.write({ 'x/y.txt': 'mine\n' }), { 'x/y.txt': 'mine\n' }],
  ]
  test.each(EDITS)('somebody who %s keeps it, and everything else goes back', async (_, edit, theirs) => {
    const { world, repo, commit, before } = await scene(FILES)
    expect(await landAnd(world, repo, commit, 'land/placing', () => edit(world), 2)).toMatchObject({
      code: 'edited-meanwhile',
    })
    expect(listing(world.project)).toEqual({ ...before, ...theirs })
    expect(world.tip()).toBe(repo.commit)
    expectNothingLeft(world)
  })

  test('an editor that still writes into the file it had open keeps it', async () => {
    const { world, repo, commit, before } = await scene(FILES)
    const file = openSync(join(world.project, 'c.txt'), 'a')
    const write = () => void writeSync(file, 'mine\n')
    // After all files were placed: the last one is an addition.
    expect(await landAnd(world, repo, commit, 'land/placing', write, 4)).toMatchObject({ code: 'edited-meanwhile' })
    closeSync(file)
    expect(listing(world.project)).toEqual({ ...before, 'c.txt': 'c\nmine\n' })
    expectNothingLeft(world)
  })

  test('a commit, an add and a switch of the user are refused by git and change nothing', async () => {
    const { world, repo, commit } = await scene(FILES)
    world.user(['branch', 'other', world.user(['commit-tree', '-p', 'HEAD', '-m', 'other', `${commit}^{tree}`])])
    const refused: string[] = []
    const tryAll = () => {
      for (const args of [['add', '-A'], ['commit', '-qam', 'mine'], ['switch', '-qc', 'other'], ['stash']]) {
        try {
          world.user(args)
        } catch (error) {
          refused.push(String(error))
        }
      }
    }
    expect(await landAnd(world, repo, commit, 'land/placed', tryAll)).toEqual(LANDED)
    expect(refused).toHaveLength(4)
    expect(world.status()).toBe('')
    expect(world.tip()).toBe(commit)
    expectNothingLeft(world)
  })

  test('a branch that is moved by force in the middle stays moved, and the files go back', async () => {
    const { world, repo, commit, before } = await scene(FILES)
    const other = world.user(['commit-tree', '-p', 'HEAD', '-m', 'elsewhere', 'HEAD^{tree}'])
    const move = () => void world.user(['update-ref', 'refs/heads/main', other])
    expect(await landAnd(world, repo, commit, 'land/placed', move)).toMatchObject({ code: 'branch-moved' })
    expect(world.tip()).toBe(other)
    expect(listing(world.project)).toEqual(before)
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })

  test('a HEAD that is turned elsewhere by force keeps its files', async () => {
    const { world, repo, commit, before } = await scene(FILES)
    world.user(['branch', 'other'])
    const turn = () => void world.user(['symbolic-ref', 'HEAD', 'refs/heads/other'])
    expect(await landAnd(world, repo, commit, 'land/placed', turn)).toMatchObject({ code: 'branch-moved' })
    expect(world.tip()).toBe(repo.commit)
    expect(listing(world.project)).toEqual(before)
    expect(world.status()).toBe('')
  })

  test('a new branch that the user goes to at the last moment has the files of its own commit', async () => {
    const { world, repo, commit, before } = await scene(FILES)
    const turn = () => void world.user(['switch', '-q', '-c', 'other'])
    const gone = { kind: 'landed', followed: false }
    expect(await landAnd(world, repo, commit, 'land/moving', turn)).toEqual(gone)
    expect([world.tip(), world.tip('other')]).toEqual([commit, repo.commit])
    expect(listing(world.project)).toEqual(before)
    expect(world.status()).toBe('')

    const late = await scene(FILES)
    const turnLate = () => void late.world.user(['switch', '-q', '-c', 'other'])
    expect(await landAnd(late.world, late.repo, late.commit, 'land/branch-moved', turnLate)).toEqual(gone)
    expect([late.world.tip(), late.world.tip('other')]).toEqual([late.commit, late.commit])
    expect(late.world.status()).toBe('')
    expectNothingLeft(late.world)
  })

  test('a begun landing that fails in a tree on another branch leaves its index free, and is redone [X1]', async () => {
    const { world, repo, commit, before } = await scene(FILES)
    world.user(['branch', 'other'])
    await expect(landAnd(world, repo, commit, 'land/branch-moved', die)).rejects.toThrow('died')
    world.user(['symbolic-ref', 'HEAD', 'refs/heads/other'])
    const index = join(world.project, '.git/index')
    const whole = readFileSync(index)
    writeFileSync(index, 'broken')
    await expect(world.land(repo, commit)).rejects.toMatchObject({ code: 'git/failed' })
    expect(world.has('.git/index.lock')).toBe(false)
    writeFileSync(index, whole)
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: false })
    expect(world.tip()).toBe(commit)
    expect(listing(world.project)).toEqual(before)
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })

  test('a begun landing whose branch is still checked out is not given up for a busy index [X1]', async () => {
    const { world, repo, commit } = await scene(FILES)
    await expect(landAnd(world, repo, commit, 'land/branch-moved', die)).rejects.toThrow('died')
    const lock = join(world.project, '.git/index.lock')
    rmSync(lock)
    writeFileSync(lock, '')
    await expect(world.land(repo, commit)).rejects.toMatchObject({ code: 'git/index-locked' })
    rmSync(lock)
    expect(await world.land(repo, commit)).toEqual(LANDED)
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })

  test('of two landings at once one waits for the other, and both land whole', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const one = await world.work(repo, { 'a.txt': 'one\n', 'one.txt': '1\n' }, 'run_1')
    const two = await world.work(repo, { 'c.txt': 'two\n', 'two.txt': '2\n' }, 'run_2')
    const ends = await Promise.all([world.land(repo, one.commit), world.land(repo, two.commit, { runId: 'run_2' })])
    expect(ends.filter(({ kind }) => kind === 'landed')).toHaveLength(1)
    expect(ends.filter((end) => end.kind === 'ready' && end.code === 'branch-moved')).toHaveLength(1)
    expect(world.status()).toBe('')
    const [work, runId] = ends[0].kind === 'landed' ? [two, 'run_2'] : [one, 'run_1']
    const from = world.tip()
    const top = await putOnTop(world.git, repo, { work: work.commit, base: repo.commit, target: from, at: AT })
    if (top.kind !== 'rebased') throw new Error(top.kind)
    expect(await world.land(repo, top.commit, { from, runId })).toEqual(LANDED)
    expect(listing(world.project)).toMatchObject({
      'a.txt': 'one\n',
      'c.txt': 'two\n',
      'one.txt': '1\n',
      'two.txt': '2\n',
    })
    expect(world.status()).toBe('')
    expectNothingLeft(world)
  })
})
