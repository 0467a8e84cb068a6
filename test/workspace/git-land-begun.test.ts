import { execFileSync } from 'node:child_process'
import { existsSync, linkSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { GitWorld } from './git-world.ts'

async function scene() {
  const world = new GitWorld()
  await world.start()
  world.commit({ 'second.txt': '2\n' })
  const repo = await world.open()
  const { commit } = await world.work(repo, { 'a.txt': 'new\n' })
  return { world, repo, commit }
}

/** As a process leaves it that died with something in place. */
function begin(gitDir: string): void {
  const stage = join(gitDir, 'holdfast', 'run_1')
  mkdirSync(stage, { recursive: true })
  writeFileSync(join(stage, 'begun'), '')
  writeFileSync(join(stage, 'lock'), '')
  linkSync(join(stage, 'lock'), join(gitDir, 'index.lock'))
}

function rebase({ project, env }: GitWorld): void {
  const editor = { ...env, GIT_SEQUENCE_EDITOR: 'sed -i 1s/^pick/edit/' }
  execFileSync('git', ['rebase', '-q', '-i', 'HEAD~1'], { cwd: project, env: editor, stdio: 'ignore' })
}

const UNCERTAIN = { code: 'git/landing-begun', retry: { afterMs: 1_000 } }

describe('a landing that was begun is not said to wait, but goes on when it can', () => {
  test('after a rebase, and then has landed whatever is done on top of it', async () => {
    const { world, repo, commit } = await scene()
    rebase(world)
    begin(repo.commonDir)
    mkdirSync(join(repo.commonDir, 'worktrees'))
    writeFileSync(join(repo.commonDir, 'worktrees', '.DS_Store'), 'of a file manager')
    await expect(world.land(repo, commit)).rejects.toMatchObject(UNCERTAIN)
    // Its lock is not in the way of those who have to end it.
    world.user(['rebase', '--abort'])
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: true })
    rebase(world)
    expect(await world.land(repo, commit)).toMatchObject({ kind: 'landed' })
    world.user(['rebase', '--abort'])
    expect(existsSync(join(repo.commonDir, 'holdfast'))).toBe(false)
  })

  test('when only one working tree has its branch', async () => {
    const { world, repo, commit } = await scene()
    const other = join(world.folder, 'other')
    world.user(['worktree', 'add', '-q', '-f', other, 'main'])
    begin(repo.commonDir)
    await expect(world.land(repo, commit)).rejects.toMatchObject(UNCERTAIN)
    world.user(['worktree', 'remove', other])
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: true })
  })

  test('when its working tree is there again', async () => {
    const { world, repo, commit } = await scene()
    const other = join(world.folder, 'other')
    world.user(['switch', '-q', '-c', 'elsewhere'])
    world.user(['worktree', 'add', '-q', other, 'main'])
    begin(join(repo.commonDir, 'worktrees', 'other'))
    renameSync(other, `${other}.away`)
    await expect(world.land(repo, commit)).rejects.toMatchObject(UNCERTAIN)
    renameSync(`${other}.away`, other)
    expect(await world.land(repo, commit)).toEqual({ kind: 'landed', followed: true })
  })
})
