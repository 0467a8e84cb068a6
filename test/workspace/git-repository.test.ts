import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'

import { describe, expect, test, vi } from 'vitest'

import { diff } from '../../src/git/diff.ts'
import { initRepository } from '../../src/git/init.ts'
import { land } from '../../src/git/land.ts'
import { putOnTop } from '../../src/git/on-top.ts'
import { branchFrom, deleteRef, listOurs, readRef, setOwnRef, setRef } from '../../src/git/refs.ts'
import { removeFolder } from '../../src/git/remove.ts'
import { fileAt, readBlob, repositoryAt } from '../../src/git/repository.ts'
import { runGit } from '../../src/git/run-git.ts'
import { objectsOf, observe } from '../../src/git/shadow.ts'
import { sweep } from '../../src/git/sweep.ts'
import { changedIn, checkIn, checkOut, removeCheckOut } from '../../src/git/tree.ts'
import { AT, GitWorld, listing } from './git-world.ts'

describe('a folder', () => {
  test('in no repository, with nothing committed, bare or inside of a git folder is refused with what to do', async () => {
    const world = new GitWorld()
    await expect(world.open()).rejects.toMatchObject({
      code: 'git/no-repository',
      remedy: expect.stringContaining('--init'),
    })
    await expect(world.open(join(world.folder, 'none'))).rejects.toMatchObject({ code: 'git/no-folder' })
    world.user(['init', '-q'])
    await expect(world.open()).rejects.toMatchObject({ code: 'git/no-commit' })
    await expect(world.open(join(world.project, '.git'))).rejects.toMatchObject({ code: 'git/inside' })
    const bare = join(world.folder, 'bare')
    world.user(['init', '-q', '--bare', bare])
    await expect(world.open(bare)).rejects.toMatchObject({ code: expect.stringMatching(/git\/(bare|inside)/) })
    world.commit({ 'a.txt': 'a\n' })
    world.user(['config', 'remote.origin.promisor', 'true'])
    await expect(world.open()).rejects.toMatchObject({ code: 'git/partial' })
  })

  test('is found from a folder below, in a linked tree, in a shallow clone, and with HEAD detached', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    expect(await world.open(join(world.project, 'dir'))).toMatchObject({ prefix: 'dir', top: world.project })
    const linked = join(world.folder, 'linked')
    world.user(['worktree', 'add', '-q', '--detach', linked])
    expect(await world.open(linked)).toMatchObject({
      top: linked,
      commonDir: repo.commonDir,
      head: { kind: 'detached' },
    })
    expect(await repositoryAt(world.git, repo)).toMatchObject({ room: repo.room, format: 'sha1' })
    expect(await repositoryAt(world.git, { commonDir: join(world.folder, 'gone'), top: '/' })).toBeUndefined()

    world.commit({ 'a.txt': 'second\n' })
    const clone = join(world.folder, 'clone')
    world.user(['clone', '-q', '--depth', '1', `file://${world.project}`, clone], world.folder)
    const shallow = await world.open(clone)
    const work = await world.work(shallow, { 'a.txt': 'third\n' })
    const other = world.user(['commit-tree', '-p', 'HEAD', '-m', 'o', 'HEAD^{tree}'], clone)
    const top = await putOnTop(world.git, shallow, { work: work.commit, base: shallow.commit, target: other, at: AT })
    expect(top).toMatchObject({ kind: 'rebased' })
  })

  test.runIf(process.getuid?.() === 0)(
    'of somebody else is used if git was told so, whatever else it was told',
    async () => {
      const world = new GitWorld()
      await world.start()
      chownSync(world.project, 4_321, 4_321)
      await expect(world.open()).rejects.toMatchObject({ code: 'git/not-trusted' })
      for (const folder of [world.project, '/another/one'])
        world.user(['config', '--global', '--add', 'safe.directory', folder], world.folder)
      expect((await world.open()).top).toBe(world.project)
      for (const folder of ['', '/another/one'])
        world.user(['config', '--global', '--add', 'safe.directory', folder], world.folder)
      await expect(world.open()).rejects.toMatchObject({ code: 'git/not-trusted' })
      const mine = join(world.env['HOME']!, 'mine')
      world.user(['init', '-q', mine], world.folder)
      world.user(['commit', '-q', '--allow-empty', '-m', 'first'], mine)
      chownSync(mine, 4_321, 4_321)
      await expect(world.open(mine)).rejects.toMatchObject({ code: 'git/not-trusted' })
      world.user(['config', '--global', '--add', 'safe.directory', '~/mine'], world.folder)
      expect((await world.open(mine)).top).toBe(mine)
    },
  )

  test('whose room was torn by a power loss gets another one', async () => {
    const world = new GitWorld()
    const { room } = await world.start()
    writeFileSync(join(room, 'HEAD'), '')
    expect((await world.open()).uncommitted).toBe(0)
    rmSync(join(room, 'refs'), { recursive: true })
    writeFileSync(join(room, 'config'), '[core')
    expect((await world.open()).room).toBe(room)
    expect(readdirSync(world.git.rooms)).toEqual([basename(room)])
  })

  test('becomes a repository with one commit of what is in it, in either object format', async () => {
    const world = new GitWorld()
    world.write({ '.gitignore': 'secret\n', 'a.txt': 'a\n', secret: 's\n' })
    const repo = await initRepository(world.git, world.project, AT)
    expect(repo).toMatchObject({ uncommitted: 0, head: { kind: 'branch', name: 'main' } })
    expect(world.user(['ls-files'])).toBe('.gitignore\na.txt')
    expect((await initRepository(world.git, world.project, AT)).commit).toBe(repo.commit)

    const other = new GitWorld()
    other.user(['init', '-q', '--object-format=sha256'])
    other.write({ 'a.txt': 'a\n' })
    const long = await initRepository(other.git, other.project, AT)
    expect(long.commit).toHaveLength(64)
    const work = await other.work(long, { 'a.txt': null, 'b.txt': 'b\n' })
    expect(await other.land(long, work.commit)).toMatchObject({ kind: 'landed' })
    expect(other.status()).toBe('')
    expect(other.fsck()).toBe('')
  })

  test('git that is missing, too old or cancelled is told from a repository that is not there', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const bin = join(world.folder, 'bin')
    mkdirSync(bin)
    const withPath = (path: string) => ({ ...world.git, env: { ...world.env, PATH: path } })
    await expect(runGit(withPath(bin), ['version'])).rejects.toMatchObject({ code: 'git/missing' })
    writeFileSync(join(bin, 'git'), '#!/bin/sh\necho git version 2.34.1\n', { mode: 0o755 })
    const asked = initRepository(withPath(bin), world.project, AT)
    await expect(asked).rejects.toMatchObject({ code: 'git/too-old', message: expect.stringContaining('2.34.1') })
    writeFileSync(join(bin, 'git'), '#!/bin/sh\nexec sleep 1000\n')
    const stop = new AbortController()
    const git = { ...withPath(`${bin}:/usr/bin:/bin`), signal: stop.signal }
    const waiting = runGit(git, ['version'])
    stop.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'git/cancelled' })
    await expect(runGit({ ...git, signal: AbortSignal.any([]) }, ['version'], { timeoutMs: 50 })).rejects.toMatchObject(
      { code: 'git/timeout' },
    )
    await expect(
      runGit(world.git, ['cat-file', '-p', repo.commit], { gitDir: repo.commonDir, maxBytes: 5 }),
    ).rejects.toMatchObject({ code: 'git/output' })
  })
})

describe('work put on top of a branch', () => {
  test('that went on is merged with what the base had, the same way each time', async () => {
    const world = new GitWorld()
    const repo = await world.start({ 'a.txt': '1\n2\n3\n4\n5\n', 'b.txt': 'b\n' })
    const work = (await world.work(repo, { 'a.txt': '1\n2\n3\n4\nfive\n' })).commit
    const on = (target: string) => putOnTop(world.git, repo, { work, base: repo.commit, target, at: AT })
    expect(await on(repo.commit)).toEqual({ kind: 'same', commit: work })
    const later = world.commit({ 'a.txt': 'one\n2\n3\n4\n5\n' })
    const top = await on(later)
    expect(top.kind).toBe('rebased')
    expect(await on(later)).toEqual(top)
    if (top.kind !== 'rebased') return
    expect(world.user(['show', `${top.commit}:a.txt`])).toBe('one\n2\n3\n4\nfive')
    expect(world.user(['rev-parse', `${top.commit}^`])).toBe(later)
    expect(await on(world.commit({ 'a.txt': '1\n2\n3\n4\nFIVE\n' }))).toEqual({
      kind: 'conflict',
      paths: ['a.txt'],
      count: 1,
    })
    expect(await on(world.commit({ 'a.txt': '1\n2\n3\n4\nfive\n' }))).toMatchObject({ kind: 'same' })
    expect(world.fsck()).toBe('')
  })

  test('that was rewritten brings only the work, not what the user has dropped; several commits stay several', async () => {
    const world = new GitWorld()
    await world.start()
    world.commit({ 'dropped.txt': 'd\n' })
    const repo = await world.open()
    const first = await world.work(repo, { 'one.txt': '1\n' })
    const two = world.user([
      'commit-tree',
      '-p',
      first.commit,
      '-m',
      'two',
      `${(await world.work(repo, { 'one.txt': '1\n', 'two.txt': '2\n' })).commit}^{tree}`,
    ])
    world.user(['reset', '-q', '--hard', 'HEAD~1'])
    const target = world.commit({ 'instead.txt': 'i\n' })
    const top = await putOnTop(world.git, repo, { work: two, base: repo.commit, target, at: AT })
    if (top.kind !== 'rebased') throw new Error(top.kind)
    expect(world.user(['ls-tree', '--name-only', top.commit])).toBe('a.txt\nc.txt\ndir\ninstead.txt\none.txt\ntwo.txt')
    expect(world.user(['log', '--format=%s', `${target}..${top.commit}`])).toBe('two\nthe work')
  })

  test('keeps the letters of a commit that is not written in UTF-8, and whose commit it is', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    // As `i18n.commitEncoding` makes them; what is given on the command line has to be in that encoding, too.
    const env = { ...world.env, LC_ALL: 'C', GIT_AUTHOR_NAME: 'PLACE' }
    const settings = ['-c', 'i18n.commitEncoding=ISO-8859-1', '-c', 'i18n.logOutputEncoding=UTF-8']
    const type = (...args: string[]) => execFileSync('git', [...settings, ...args], { cwd: world.project, env })
    writeFileSync(join(world.folder, 'message'), Buffer.from('Größe der Straße\n', 'latin1'))
    world.write({ 'one.txt': '1\n' })
    type('add', '-A')
    type('commit', '-q', '-F', join(world.folder, 'message'))
    const raw = execFileSync('git', ['cat-file', 'commit', 'HEAD'], { cwd: world.project, env })
    const named = Buffer.from(raw.toString('latin1').replace('PLACE', 'Jürgen'), 'latin1')
    const hash = ['hash-object', '-t', 'commit', '-w', '--stdin']
    const work = execFileSync('git', hash, { cwd: world.project, env, input: named }).toString().trim()
    const said = ['show', '-s', '--encoding=UTF-8', '--format=%an: %s (%e)']
    expect(world.user([...said, work])).toBe('Jürgen: Größe der Straße (ISO-8859-1)')
    world.user(['reset', '-q', '--hard', repo.commit])
    const target = world.commit({ 'other.txt': 'o\n' })
    const top = await putOnTop(world.git, repo, { work, base: repo.commit, target, at: AT })
    if (top.kind !== 'rebased') throw new Error(top.kind)
    expect(world.user([...said, top.commit])).toBe('Jürgen: Größe der Straße (ISO-8859-1)')
    expect(world.fsck()).toBe('')
  })
})

describe('refs, folders and what is left', () => {
  test('a ref is set only from what it was, and a branch is made only under a free name', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const { commit } = await world.work(repo, { 'a.txt': 'n\n' })
    const { git } = world
    const ref = 'refs/holdfast/tx/run_1'
    expect(await setRef(git, repo, ref, { to: repo.commit, old: null })).toBe('set')
    expect(await setRef(git, repo, ref, { to: repo.commit, old: null })).toBe('set')
    expect(await setRef(git, repo, ref, { to: commit, old: null })).toBe('moved')
    expect(await setRef(git, repo, ref, { to: commit, old: repo.commit })).toBe('set')
    expect(await listOurs(git, repo)).toEqual([{ ref, commit }])
    await deleteRef(git, repo, ref)
    await deleteRef(git, repo, ref)
    expect(await readRef(git, repo, ref)).toBeUndefined()
    expect(await branchFrom(git, repo, 'kept/run-1', commit)).toBe('made')
    expect(await branchFrom(git, repo, 'kept/run-1', commit)).toBe('same')
    expect(await branchFrom(git, repo, 'main', commit)).toBe('taken')
    for (const name of ['-x', 'a..b', 'a b', 'x.lock']) {
      await expect(branchFrom(git, repo, name, commit)).rejects.toMatchObject({ code: 'git/bad-branch' })
    }
    expect(world.user(['rev-parse', 'kept/run-1'])).toBe(commit)
  })

  test('every folder that names a branch is synced before anybody is told of it', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const open = vi.spyOn(process.getBuiltinModule('node:fs/promises'), 'open')
    expect(await branchFrom(world.git, repo, 'new/deep/branch', repo.commit)).toBe('made')
    const opened = open.mock.calls.map(([path]) => relative(repo.commonDir, String(path)))
    open.mockRestore()
    expect(opened).toEqual(['refs/heads/new/deep', 'refs/heads/new', 'refs/heads', 'refs'])
  })

  test('a branch of a repository that keeps its refs in tables has the folder of those to sync, and no other', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    // There `refs/heads` is a file; the git that we need at least knows no tables, so one that only says yes stands in for it.
    rmSync(join(repo.commonDir, 'refs/heads'), { recursive: true })
    world.write({ '.git/refs/heads': 'this repository uses the reftable format\n', '../yes/git': '#!/bin/sh\n' })
    chmodSync(join(world.folder, 'yes/git'), 0o755)
    const git = { ...world.git, env: { ...world.env, PATH: join(world.folder, 'yes') } }
    mkdirSync(join(repo.commonDir, 'reftable'))
    const open = vi.spyOn(process.getBuiltinModule('node:fs/promises'), 'open')
    for (const ref of ['refs/heads/feature/x', 'refs/heads/plain']) {
      expect(await setRef(git, repo, ref, { to: repo.commit, old: null })).toBe('set')
    }
    const opened = open.mock.calls.map(([path]) => relative(repo.commonDir, String(path)))
    open.mockRestore()
    expect(opened.filter((path) => path === 'reftable')).toHaveLength(2)
  })

  test('only what is ours and of no known run is swept', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const { commit } = await world.work(repo, { 'a.txt': 'n\n' })
    for (const run of ['run_1', 'run_2']) await setOwnRef(world.git, repo, `refs/holdfast/tx/${run}`, commit)
    const dying = {
      ...world.git,
      point: (name: string) => {
        if (name === 'land/looked') throw new Error('died')
      },
    }
    // As a death leaves it: its folder, and a lock that is the same file.
    await expect(
      land(dying, repo, { target: 'refs/heads/main', from: repo.commit, to: commit, runId: 'run_1' }),
    ).rejects.toThrow('died')
    execFileSync(
      'sh',
      ['-c', 'mkdir -p holdfast/run_1 && echo > holdfast/run_1/lock && ln holdfast/run_1/lock index.lock'],
      { cwd: join(world.project, '.git') },
    )
    expect(await sweep(world.git, repo, () => true)).toEqual({ refs: [], locks: [], folders: [] })
    const swept = await sweep(world.git, repo, (run) => run === 'run_2')
    expect(swept).toMatchObject({ refs: ['refs/holdfast/tx/run_1'], locks: [join(repo.commonDir, 'index.lock')] })
    expect((await listOurs(world.git, repo)).map(({ ref }) => ref)).toEqual(['refs/holdfast/tx/run_2'])
    writeFileSync(join(world.project, '.git/index.lock'), 'theirs')
    await sweep(world.git, repo, () => false)
    expect(world.has('.git/index.lock')).toBe(true)
  })

  test('that a landing was given up stays in the repository for longer than its work', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    for (const kind of ['tx', 'given-up']) await setOwnRef(world.git, repo, `refs/holdfast/${kind}/run_1`, repo.commit)
    const sweepWhile = (isBarred: boolean) =>
      sweep(
        world.git,
        repo,
        () => false,
        () => isBarred,
      )
    expect((await sweepWhile(true)).refs).toEqual(['refs/holdfast/tx/run_1'])
    expect((await sweepWhile(false)).refs).toEqual(['refs/holdfast/given-up/run_1'])
  })

  test('a folder that its owner may not write is removed all the same, and nothing beside it', async () => {
    const world = new GitWorld()
    const folder = join(world.folder, 'remains', 'run_1')
    world.write({ 'deep/er/x': 'x' }, folder)
    world.write({ keep: 'k' }, join(world.folder, 'remains'))
    chmodSync(join(folder, 'deep/er'), 0o500)
    await removeFolder(world.git, folder)
    await removeFolder(world.git, folder)
    expect(readdirSync(join(world.folder, 'remains'))).toEqual(['keep'])
  })
})

describe('the folder of a check', () => {
  test('has exactly the commit, a repository of its own, and tells which tracked files the check changed', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const { commit } = await world.work(repo, { 'a.txt': 'n\n', 'run.sh': 'exit 0\n' })
    const check = checkIn(world.place().folder)
    await checkOut(world.git, repo, check, commit)
    expect(world.user(['status', '--porcelain'], check.folder)).toBe('')
    expect(world.user(['rev-parse', 'HEAD'], check.folder)).toBe(commit)
    world.write({ 'made-by-check.txt': 'm\n' }, check.folder)
    expect(await changedIn(world.git, repo, check)).toEqual([])
    execFileSync('sh', ['-c', 'touch -r a.txt ../r; printf "N\\n" > a.txt; touch -r ../r a.txt; rm c.txt'], {
      cwd: check.folder,
    })
    expect(await changedIn(world.git, repo, check)).toEqual(['a.txt', 'c.txt'])
    await removeCheckOut(world.git, check)
    const file = await fileAt(world.git, repo, commit, 'run.sh')
    expect(file).toMatchObject({ executable: false })
    expect((await readBlob(world.git, repo, file!.blob, 100)).toString()).toBe('exit 0\n')
    expect(await fileAt(world.git, repo, commit, 'dir')).toBeUndefined()
  })
})

describe('a shadow', () => {
  test('sees the user’s tree before and after, and writes nothing into their repository [X5]', async () => {
    const world = new GitWorld()
    await world.start()
    world.write({ 'a.txt': 'uncommitted\n', 'mine.txt': 'm\n' })
    world.write({ 'c.txt': 'staged\n' })
    world.user(['add', 'c.txt'])
    const repo = await world.open()
    const inGit = () =>
      execFileSync('sh', ['-c', 'find . -type f -printf "%p %T@ %s\\n" | sort'], {
        cwd: repo.commonDir,
        encoding: 'utf8',
      })
    const held = inGit()
    const shadow = { folder: join(world.folder, 'shadow') }
    const look = (message: string) => observe(world.git, repo, shadow, { parent: repo.commit, message, at: AT })
    const before = await look('before')
    expect(before.changed).toEqual(['a.txt', 'c.txt', 'mine.txt'])
    world.write({ 'a.txt': 'by the run\n', 'dir/new.txt': 'n\n' })
    const after = await look('after')
    const objects = objectsOf(shadow)
    const { text } = await diff(world.git, repo, { from: before.commit, to: after.commit, objects })
    expect(text).toContain('-uncommitted\n+by the run\n')
    expect(text).not.toContain('mine.txt')
    const check = { ...checkIn(join(world.folder, 'shadow-check')), objects }
    mkdirSync(join(world.folder, 'shadow-check'))
    await checkOut(world.git, repo, check, after.commit)
    expect(listing(check.folder)).toEqual(listing(world.project))
    expect(world.user(['log', '-1', '--format=%s'], check.folder)).toBe('after')
    expect(inGit()).toBe(held)
  })
})
