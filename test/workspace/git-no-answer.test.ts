import { describe, expect, test } from 'vitest'

import { diff } from '../../src/git/diff.ts'
import type { Git } from '../../src/git/git.ts'
import { initRepository } from '../../src/git/init.ts'
import { keptCommits } from '../../src/git/kept.ts'
import { branchFrom, readRef } from '../../src/git/refs.ts'
import { findRepository } from '../../src/git/repository.ts'
import { KILLS, REAL_GIT, trapGit } from './git-trap.ts'
import { AT, GitWorld } from './git-world.ts'

/** Nothing is wrong with what it was about: whoever asked may try again. */
const KILLED = { code: 'git/failed', retry: { afterMs: 1_000 } }

/** A git that is killed at the one command that the condition is about. */
function killedAt(world: GitWorld, condition: string, act: string = KILLS.before): Git {
  const { env } = trapGit({ world }, condition, act)
  return { ...world.git, env }
}

describe('a git command that was killed, or could not write, is no answer', () => {
  test('a repository is not taken for one without a commit, and keeps its history', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const git = killedAt(world, '[ "$1 $4" = "rev-parse HEAD" ]')
    await expect(initRepository(git, world.project, AT)).rejects.toMatchObject(KILLED)
    expect(world.tip()).toBe(repo.commit)
    expect((await initRepository(git, world.project, AT)).commit).toBe(repo.commit)
  })

  test('a first commit that somebody makes in the middle of an init stays', async () => {
    const world = new GitWorld()
    world.write({ 'a.txt': 'a\n' })
    const first = `env -i PATH="$PATH" HOME=${world.env['HOME']} ${REAL_GIT} -C ${world.project} commit -qm mine --allow-empty`
    const git = killedAt(world, '[ "$1 $4" = "update-ref HEAD" ]', first)
    await expect(initRepository(git, world.project, AT)).rejects.toMatchObject({ code: 'git/failed' })
    expect(world.user(['log', '--format=%s'])).toBe('mine')
  })

  test('the first branch has the name that its user wants, or none', async () => {
    const world = new GitWorld()
    world.write(
      { '.gitconfig': '[user]\n\tname = P\n\temail = p@example.com\n[init]\n\tdefaultBranch = trunk\n' },
      world.env['HOME'],
    )
    world.write({ 'a.txt': 'a\n' })
    const git = killedAt(world, '[ "$1 $3" = "config init.defaultBranch" ]')
    await expect(initRepository(git, world.project, AT)).rejects.toMatchObject(KILLED)
    expect(await initRepository(git, world.project, AT)).toMatchObject({ head: { name: 'trunk' } })
  })

  test('a repository is not taken for somebody else’s', async () => {
    const world = new GitWorld()
    await world.start()
    const git = killedAt(world, '[ "$1" = rev-parse ]')
    await expect(findRepository(git, world.project)).rejects.toMatchObject(KILLED)
    const stopped = findRepository({ ...world.git, signal: AbortSignal.abort() }, world.project)
    await expect(stopped).rejects.toMatchObject({ code: 'git/cancelled' })
  })

  test('a name of a branch is not taken for a bad one, nor a difference for one that is not to be had', async () => {
    const world = new GitWorld()
    const repo = await world.start()
    const { commit } = await world.work(repo, { 'a.txt': 'n\n' })
    const naming = killedAt(world, '[ "$1" = check-ref-format ]')
    await expect(branchFrom(naming, repo, 'kept/run-1', commit)).rejects.toMatchObject(KILLED)
    expect(await readRef(world.git, repo, 'refs/heads/kept/run-1')).toBeUndefined()
    expect(await branchFrom(naming, repo, 'kept/run-1', commit)).toBe('made')
    const comparing = killedAt(world, '[ "$1" = diff-tree ]')
    await expect(diff(comparing, repo, { from: repo.commit, to: commit })).rejects.toMatchObject(KILLED)
    expect((await diff(comparing, repo, { from: repo.commit, to: commit })).text).toContain('-a\n+n\n')
  })

  test.each([
    ['is killed', KILLS.before, KILLED],
    ['finds the disk full', 'echo "fatal: write error: No space left on device" >&2; exit 128', { code: 'files/full' }],
  ])('an agent’s commits are not taken for damaged when git %s', async (_, act, expected) => {
    const world = new GitWorld()
    const repo = await world.start()
    const place = await world.opened(repo)
    world.write({ 'one.txt': '1\n' }, place.tree)
    world.user(['add', '-A'], place.tree)
    world.user(['commit', '-qm', 'one'], place.tree)
    const options = { base: repo.commit, snapshot: await world.take(repo, place), message: 'm', at: AT }
    for (const command of ['pack-objects', 'index-pack']) {
      const git = killedAt(world, `[ "$1" = ${command} ]`, act)
      await expect(keptCommits(git, repo, place, options)).rejects.toMatchObject(expected)
      expect(await keptCommits(git, repo, place, options)).toMatchObject({ kind: 'kept', count: 1 })
    }
  })
})
