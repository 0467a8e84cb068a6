import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import { writeCommit } from './commit.ts'
import type { Git } from './git.ts'
import { findRepository, openRepository, requireGit, type OpenedRepository } from './repository.ts'
import { atDesk } from './room.ts'
import { askGit, runGit } from './run-git.ts'
import { takeTree } from './take.ts'

/** Makes the folder a repository with one commit of what is in it (ignored files are not): for `--init`. One that has a commit stays as it is. */
export async function initRepository(git: Git, folder: string, at: number): Promise<OpenedRepository> {
  await requireGit(git)
  if ((await findRepository(git, folder)) === undefined) {
    const branch = await askGit(git, ['config', '--get', 'init.defaultBranch'], { asUser: true })
    const name = branch.text || 'main'
    await runGit(git, ['init', '-q', '--template=', `--initial-branch=${name}`, '--', folder], { cwd: folder })
  }
  const found = await findRepository(git, folder)
  if (found === undefined) {
    throw new HoldfastError('git/failed', `git made no repository of ${folder}`, {
      remedy: 'make one yourself (git init, then a first commit), and leave out --init',
    })
  }
  const { gitDir, top } = found
  const tip = await runGit(git, ['rev-parse', '--verify', '-q', 'HEAD'], { gitDir }, [0, 1])
  if (tip.text === '') {
    const own = await mkdtemp(join(tmpdir(), 'holdfast-'))
    try {
      const index = join(own, 'index')
      const { text: parent } = await runGit(git, ['hash-object', '-t', 'tree', '-w', '--stdin'], {
        ...atDesk(found),
        input: '',
      })
      const { tree } = await takeTree(git, found, { workTree: top, index, parent })
      const commit = await writeCommit(git, found, { tree, parents: [], at, message: 'What was there' })
      // The index before the commit: a death in between leaves everything staged, and nothing committed.
      await runGit(git, ['read-tree', tree], { gitDir, workTree: top })
      // Only if there is none: somebody may have made the first commit meanwhile.
      const none = '0'.repeat(commit.length)
      await runGit(git, ['update-ref', '-m', 'holdfast: init', 'HEAD', commit, none], { gitDir, at })
    } finally {
      await rm(own, { recursive: true, force: true })
    }
  }
  return openRepository(git, folder)
}
