import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { diff } from '../../src/git/diff.ts'
import { keptCommits } from '../../src/git/kept.ts'
import { isOpen } from '../../src/git/tree.ts'
import type { TreePlace } from '../../src/git/tree.ts'
import { AT, GitWorld, listing } from './git-world.ts'

const agent = (world: GitWorld, place: TreePlace, ...args: string[]) => world.user(args, place.tree)

describe('the private tree', () => {
  test('has the files of the base, is a clean repository on its own branch, and leaves no trace in the user’s', async () => {
    const world = new GitWorld()
    await world.start()
    world.user(['tag', 'v1'])
    world.user(['remote', 'add', 'origin', 'https://example.com/x.git'])
    world.write({ 'a.txt': 'uncommitted\n', 'new.txt': 'untracked\n' })
    const repo = await world.open()
    expect(repo).toMatchObject({ prefix: '', uncommitted: 2, head: { kind: 'branch', name: 'main' } })
    const refs = world.user(['for-each-ref'])
    const place = await world.opened(repo)
    expect(listing(place.tree)).toEqual({ 'a.txt': 'a\n', 'c.txt': 'c\n', 'dir/b.txt': 'b\n' })
    expect(agent(world, place, 'status', '--porcelain', '--branch')).toBe('## holdfast/run_1')
    expect(agent(world, place, 'log', '--format=%s', 'v1')).toBe('first')
    expect(agent(world, place, 'remote', 'get-url', 'origin')).toBe('https://example.com/x.git')
    expect(agent(world, place, 'fsck', '--strict', '--no-dangling', '--no-progress')).toBe('')
    expect(world.user(['for-each-ref'])).toBe(refs)
    expect(world.user(['worktree', 'list']).split('\n')).toHaveLength(1)
  })

  test('is made anew over what a death left of it, and from a checkpoint with the changes uncommitted', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    for (const at of ['open/begun', 'open/repository-made', 'open/files-out'] as const) {
      const point = (name: string) => {
        if (name === at) throw new Error('died')
      }
      const dying = Object.assign(Object.create(world) as GitWorld, { git: { ...world.git, point } })
      await expect(dying.opened(repo)).rejects.toThrow('died')
      expect(await isOpen(world.place())).toBe(false)
    }
    const place = await world.opened(repo)
    expect(await isOpen(place)).toBe(true)
    world.write({ 'a.txt': 'half way\n', 'more.txt': 'm\n' }, place.tree)
    const { commit } = await world.take(repo, place)
    const again = await world.opened(repo, 'run_1', { content: commit })
    expect(listing(again.tree)).toMatchObject({ 'a.txt': 'half way\n', 'more.txt': 'm\n' })
    expect(agent(world, again, 'rev-parse', 'HEAD')).toBe(repo.commit)
    expect(agent(world, again, 'status', '--porcelain')).toBe('M a.txt\n?? more.txt')
    expect(await world.take(repo, again)).toMatchObject({ commit })
  })

  test('gets copies and links as declared, which are never part of the work', async () => {
    const world = new GitWorld()
    const repo = await world.start({ '.gitignore': '.env\nmodules/\n', 'a.txt': 'a\n' })
    world.write({ '.env': 'KEY=1\n', 'modules/m.js': 'm\n', 'notes/n.txt': 'n\n' })
    const extras = { copy: ['.env', 'notes'], link: ['modules/'] }
    const place = await world.opened(repo, 'run_1', extras)
    expect(world.read('.env', place.tree)).toBe('KEY=1\n')
    expect(readlinkSync(join(place.tree, 'modules'))).toBe(join(world.project, 'modules'))
    agent(world, place, 'add', '-A')
    expect(agent(world, place, 'status', '--porcelain')).toBe('')
    world.write({ '.env': 'KEY=2\n', 'a.txt': 'b\n', 'notes/n.txt': 'changed\n' }, place.tree)
    const work = await world.take(repo, place, { apart: ['.env', 'notes', 'modules'] })
    expect(work).toMatchObject({ changed: ['a.txt'], ignored: 0, leftOut: [] })
    expect(world.read('.env')).toBe('KEY=1\n')
    for (const path of ['none', '../user', 'a.txt', '/etc/passwd', '.git/config']) {
      await expect(world.opened(repo, 'run_2', { copy: [path] })).rejects.toMatchObject({ code: 'git/no-such-extra' })
    }
  })
})

describe('a snapshot', () => {
  test('of the same work is the same commit, and of no work the base', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const place = await world.opened(repo)
    expect(await world.take(repo, place)).toMatchObject({ commit: repo.commit, changedCount: 0 })
    world.write({ 'a.txt': 'new\n' }, place.tree)
    const first = await world.take(repo, place)
    rmSync(place.index)
    expect((await world.take(repo, place)).commit).toBe(first.commit)
    writeFileSync(place.index, 'torn')
    expect((await world.take(repo, place)).commit).toBe(first.commit)
    expect(world.user(['show', '-s', '--format=%an <%ae> %ad %s|%P', first.commit])).toBe(
      `Holdfast <holdfast@localhost> Fri Jan 2 03:04:05 2026 +0000 the work|${repo.commit}`,
    )
    expect((await diff(world.git, repo, { from: repo.commit, to: first.commit })).text).toContain('-a\n+new\n')
    expect((await diff(world.git, repo, { from: repo.commit, to: first.commit }, 20)).cut).toBe(true)
  })

  test('looks at files as the user’s own git does: what they ignore everywhere, and their line ends', async () => {
    const world = new GitWorld()
    const home = world.env['HOME']!
    world.write({ '.config/git/ignore': '*.swp\n' }, home)
    await world.start({ 'a.txt': 'a\n' })
    execFileSync('git', ['config', '--global', 'core.autocrlf', 'true'], { env: world.env })
    const repo = await world.open()
    const place = await world.opened(repo)
    expect(world.read('a.txt', place.tree)).toBe('a\r\n')
    world.write({ 'a.txt': 'b\r\n', '.a.txt.swp': 's', 'new.txt': 'n\r\n' }, place.tree)
    const work = await world.take(repo, place)
    expect(work).toMatchObject({ changed: ['a.txt', 'new.txt'], ignored: 1 })
    expect(await world.land(repo, work.commit)).toMatchObject({ kind: 'landed' })
    expect(listing(world.project)).toEqual({ 'a.txt': 'b\r\n', 'new.txt': 'n\r\n' })
    expect(world.user(['cat-file', '-s', 'HEAD:a.txt'])).toBe('2')
    expect(world.status()).toBe('')
  })

  const MESSES: [string, (world: GitWorld, place: TreePlace) => void][] = [
    ['commits', (world, place) => void agent(world, place, 'commit', '-qam', 'mine')],
    [
      'resets hard after a commit elsewhere',
      (world, place) => {
        agent(world, place, 'stash', '-q')
        agent(world, place, 'commit', '-q', '--allow-empty', '-m', 'x')
        agent(world, place, 'stash', 'pop', '-q')
      },
    ],
    ['rewrites its history', (world, place) => void agent(world, place, 'commit', '-qa', '--amend', '-m', 'rewritten')],
    [
      'deletes its repository',
      (_, place) => {
        rmSync(place.git, { recursive: true })
        rmSync(join(place.tree, '.git'))
      },
    ],
    [
      'makes another repository in its place',
      (world, place) => {
        rmSync(join(place.tree, '.git'))
        agent(world, place, 'init', '-q')
      },
    ],
    [
      'switches to a new branch and removes all others',
      (world, place) => {
        agent(world, place, 'checkout', '-q', '-b', 'elsewhere')
        agent(world, place, 'branch', '-q', '-D', 'main', 'holdfast/run_1')
      },
    ],
    [
      'packs and prunes everything',
      (world, place) => {
        agent(world, place, 'commit', '-qam', 'mine')
        agent(world, place, 'reflog', 'expire', '--expire=now', '--all')
        agent(world, place, 'gc', '-q', '--prune=now')
      },
    ],
  ]
  test.each(MESSES)('takes the files as they are when the agent %s', async (_, mess) => {
    const world = new GitWorld()
    const repo = await world.start()
    const refs = world.user(['for-each-ref'])
    const place = await world.opened(repo)
    world.write({ 'a.txt': 'new\n' }, place.tree)
    mess(world, place)
    expect(await world.take(repo, place)).toMatchObject({ changed: ['a.txt'], leftOut: [] })
    expect(world.user(['for-each-ref'])).toBe(refs)
    expect(world.status()).toBe('')
    expect(world.fsck()).toBe('')
  })

  test('lists what it leaves out and why, and follows no link', async () => {
    const world = new GitWorld()
    const repo = await world.start({
      '.gitignore': 'ignored\n*.log\n',
      'a.txt': 'a\n',
      'dir/b.txt': 'b\n',
      pipe: 'p\n',
    })
    const place = await world.opened(repo)
    const at = (path: string) => join(place.tree, path)
    world.write(
      { 'ignored/deep/x': '1\n', 'x.log': '1\n', 'forced.log': '1\n', 'repo/inner.txt': 'i\n', 'empty-repo/x': 'x\n' },
      place.tree,
    )
    world.user(['init', '-q'], at('repo'))
    world.user(['add', '-A'], at('repo'))
    world.user(['commit', '-qm', 'inner'], at('repo'))
    world.user(['init', '-q'], at('empty-repo'))
    mkdirSync(at('empty-folder'))
    mkdirSync(join(world.folder, 'outside'))
    writeFileSync(join(world.folder, 'outside', 'b.txt'), 'secret\n')
    renameSync(at('dir'), at('moved'))
    symlinkSync(join(world.folder, 'outside'), at('dir'))
    rmSync(at('pipe'))
    execFileSync('mkfifo', [at('pipe')])
    writeFileSync(at('git~1'), 'x\n')
    writeFileSync(at('big.bin'), '')
    truncateSync(at('big.bin'), 200 * 1024 * 1024)
    agent(world, place, 'add', '-f', 'forced.log')
    chmodSync(at('a.txt'), 0o755)
    const work = await world.take(repo, place, { largestFile: 100 * 1024 * 1024 })
    expect(work.changed).toEqual(['a.txt', 'dir', 'dir/b.txt', 'forced.log', 'moved/b.txt'])
    expect(Object.fromEntries(work.leftOut.map(({ path, why }) => [path, why]))).toEqual({
      'big.bin': expect.stringContaining('more than the limit'),
      'empty-repo/': 'a repository inside of the repository',
      'git~1': 'a name that git refuses',
      pipe: 'neither a file nor a link',
      'repo/': 'a repository inside of the repository',
    })
    expect(work).toMatchObject({ leftOutCount: 5, ignored: 2 })
    expect(world.user(['cat-file', '-p', `${work.commit}:dir`])).toBe(join(world.folder, 'outside'))
    expect(await world.land(repo, work.commit)).toMatchObject({ kind: 'landed' })
    expect(world.status()).toBe('')
  })

  test('takes a file of more than 100 MB as it is', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const place = await world.opened(repo)
    const big = join(place.tree, 'big.bin')
    writeFileSync(big, 'start')
    truncateSync(big, 101 * 1024 * 1024)
    const work = await world.take(repo, place)
    expect(work).toMatchObject({ changed: ['big.bin'], leftOutCount: 0 })
    expect(world.user(['cat-file', '-s', `${work.commit}:big.bin`])).toBe(String(101 * 1024 * 1024))
  })

  test('leaves submodules alone: an empty folder, a removed one and a filled one are no change', async () => {
    const world = new GitWorld()
    world.user(['init', '-q'])
    const inner = join(world.folder, 'inner')
    mkdirSync(inner)
    world.user(['init', '-q'], inner)
    world.user(['commit', '-q', '--allow-empty', '-m', 'i'], inner)
    for (const name of ['one', 'two', 'three']) {
      world.user(['-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner, name])
    }
    world.commit({ 'a.txt': 'a\n' })
    const repo = await world.open()
    const place = await world.opened(repo)
    expect(agent(world, place, 'status', '--porcelain')).toBe('')
    rmSync(join(place.tree, 'two'), { recursive: true })
    agent(world, place, '-c', 'protocol.file.allow=always', 'clone', '-q', inner, 'three')
    agent(world, place, '-C', 'three', 'commit', '-q', '--allow-empty', '-m', 'moved')
    world.write({ 'a.txt': 'b\n' }, place.tree)
    const work = await world.take(repo, place)
    expect(work.changed).toEqual(['a.txt'])
    expect(work.leftOut).toEqual([{ path: 'three', why: expect.stringContaining('submodule') }])
    expect(await world.land(repo, work.commit)).toMatchObject({ kind: 'landed' })
    expect(world.status()).toBe('')
  })
})

describe('the agent’s own commits', () => {
  test('are kept one by one, with one more for what it did not commit', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const place = await world.opened(repo)
    for (const name of ['one', 'two']) {
      world.write({ [`${name}.txt`]: name }, place.tree)
      agent(world, place, 'add', '-A')
      agent(world, place, 'commit', '-qm', name)
    }
    world.write({ 'rest.txt': 'rest' }, place.tree)
    const options = { base: repo.commit, snapshot: await world.take(repo, place), message: 'the rest', at: AT }
    const kept = await keptCommits(world.git, repo, place, options)
    expect(kept).toMatchObject({ kind: 'kept', count: 2 })
    if (kept.kind !== 'kept') return
    expect(world.user(['log', '--format=%an %s', `${repo.commit}..${kept.commit}`])).toBe(
      'Holdfast the rest\nPat two\nPat one',
    )
    expect(await world.land(repo, kept.commit)).toMatchObject({ kind: 'landed' })
    expect(world.fsck()).toBe('')
  })

  test('are not kept when they do not go on from the base, or are damaged', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const place = await world.opened(repo)
    const keep = async () =>
      keptCommits(world.git, repo, place, {
        base: repo.commit,
        snapshot: await world.take(repo, place),
        message: 'm',
        at: AT,
      })
    expect(await keep()).toEqual({ kind: 'none', why: 'it made no commit' })
    agent(world, place, 'commit', '-q', '--amend', '--allow-empty', '-m', 'rewritten')
    expect(await keep()).toEqual({ kind: 'none', why: 'its commits do not go on from the base' })
    agent(world, place, 'reset', '-q', repo.commit)
    const bad = execFileSync('git', ['mktree'], {
      cwd: place.tree,
      env: world.env,
      input: `100644 blob ${world.user(['hash-object', 'a.txt'])}\t.git\n`,
    })
    agent(
      world,
      place,
      'reset',
      '-q',
      '--soft',
      agent(world, place, 'commit-tree', '-p', repo.commit, '-m', 'bad', bad.toString().trim()),
    )
    expect(await keep()).toEqual({ kind: 'none', why: 'git does not accept what is in its commits' })
    rmSync(place.git, { recursive: true })
    expect(await keep()).toEqual({ kind: 'none', why: 'its repository cannot be read any more' })
    expect(world.fsck()).toBe('')
  })
})
