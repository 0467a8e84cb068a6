import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { diff } from '../../src/git/diff.ts'
import { keptCommits } from '../../src/git/kept.ts'
import { putOnTop } from '../../src/git/on-top.ts'
import { deleteRef, setOwnRef } from '../../src/git/refs.ts'
import { repositoryAt, type OpenedRepository } from '../../src/git/repository.ts'
import { observe } from '../../src/git/shadow.ts'
import { sweep } from '../../src/git/sweep.ts'
import { changedIn, checkIn, checkOut } from '../../src/git/tree.ts'
import { AT, GitWorld } from './git-world.ts'

const HOOKS = ['reference-transaction', 'post-checkout', 'post-index-change', 'pre-commit', 'post-merge', 'pre-auto-gc']

/** Every setting that can make git run a program, each with one that leaves a proof. */
const settingsWith = (evil: string, folder: string): readonly (readonly [string, string])[] => [
  ['core.fsmonitor', evil],
  ['core.hooksPath', join(folder, 'hooks')],
  ['core.sshCommand', evil],
  ['core.editor', evil],
  ['core.pager', evil],
  ['core.alternateRefsCommand', evil],
  ['filter.evil.clean', evil],
  ['filter.evil.smudge', evil],
  ['filter.evil.process', evil],
  ['filter.evil.required', 'true'],
  ['merge.evil.driver', `${evil} %A`],
  ['diff.evil.textconv', evil],
  ['diff.evil.command', evil],
  ['diff.external', evil],
  ['gpg.program', evil],
  ['commit.gpgSign', 'true'],
  ['credential.helper', evil],
  ['uploadpack.packObjectsHook', evil],
  ['remote.origin.url', `ext::${evil}`],
  ['include.path', join(folder, 'included')],
]

interface Trap {
  readonly proof: string
  set(gitDir: string): void
}

function trapIn(world: GitWorld): Trap {
  const [proof, evil] = [join(world.folder, 'proof'), join(world.folder, 'evil.sh')]
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> ${proof}\ncat\n`, { mode: 0o755 })
  const included = `[core]\n\tfsmonitor = ${evil}\n[filter "evil"]\n\tclean = ${evil}\n`
  writeFileSync(join(world.folder, 'included'), included)
  const hooksIn = (folder: string) => {
    mkdirSync(folder, { recursive: true })
    for (const hook of HOOKS)
      writeFileSync(join(folder, hook), `#!/bin/sh\necho ${hook} >> ${proof}\n`, { mode: 0o755 })
  }
  hooksIn(join(world.folder, 'hooks'))
  return {
    proof,
    set(gitDir) {
      hooksIn(join(gitDir, 'hooks'))
      for (const [key, value] of settingsWith(evil, world.folder)) {
        execFileSync('git', ['config', '--file', join(gitDir, 'config'), '--add', key, value])
      }
    },
  }
}

/** Everything that we do with a repository and a tree. */
async function doAll(world: GitWorld, repo: OpenedRepository, trap: Trap): Promise<void> {
  const { git } = world
  expect(await repositoryAt(git, repo)).toMatchObject({ room: repo.room })
  const place = await world.opened(repo)
  const commit = ['-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-qam', 'by the agent']
  world.write({ 'a.txt': 'new\n' }, place.tree)
  world.user(commit, place.tree)
  trap.set(place.git)
  world.write({ 'x.md': 'x\n' }, place.tree)
  const snapshot = await world.take(repo, place)
  expect(snapshot.changed).toEqual(['a.txt', 'x.md'])
  const kept = await keptCommits(git, repo, place, { base: repo.commit, snapshot, message: 'm', at: AT })
  expect(kept).toMatchObject({ kind: 'kept', count: 1 })
  await setOwnRef(git, repo, 'refs/holdfast/tx/run_1', snapshot.commit)
  const other = await world.work(repo, { 'a.txt': 'a\nb\n' }, 'run_0')
  await putOnTop(git, repo, { work: snapshot.commit, base: repo.commit, target: other.commit, at: AT })
  await diff(git, repo, { from: repo.commit, to: snapshot.commit })
  const check = checkIn(place.folder)
  await checkOut(git, repo, check, snapshot.commit)
  trap.set(check.git)
  await changedIn(git, repo, check)
  const shadow = { folder: join(world.folder, 'shadow') }
  await observe(git, repo, shadow, { parent: repo.commit, message: 'm', at: AT })
  expect(await world.land(repo, snapshot.commit)).toMatchObject({ kind: 'ready', code: 'filter' })
  const plain = await world.work(repo, { 'only.md': 'y\n' }, 'run_2')
  expect(await world.land(repo, plain.commit, { runId: 'run_2' })).toMatchObject({ kind: 'landed' })
  await deleteRef(git, repo, 'refs/holdfast/tx/run_1')
  await sweep(git, repo, () => false)
}

test('a hostile repository runs nothing: not by filters, monitors, hooks, drivers, transports or included files [X1]', async () => {
  const world = new GitWorld()
  const attributes = '*.txt filter=evil diff=evil merge=evil\n'
  await world.start({ '.gitattributes': attributes, 'a.txt': 'a\n', 'c.txt': 'c\n', 'dir/b.txt': 'b\n' })
  const trap = trapIn(world)
  trap.set(join(world.project, '.git'))
  await doAll(world, await world.open(), trap)
  expect(existsSync(trap.proof)).toBe(false)
  // And they would have run for anybody else, even if git then fell over a filter that ended before it had read.
  spawnSync('git', ['status'], { cwd: world.project, env: world.env, stdio: 'ignore' })
  expect(existsSync(trap.proof)).toBe(true)
})
