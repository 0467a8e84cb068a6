import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { systemClock } from '../../src/base/clock.ts'
import type { Git } from '../../src/git/git.ts'
import { deleteRef, setOwnRef } from '../../src/git/refs.ts'
import { removeFolder } from '../../src/git/remove.ts'
import { openRepository } from '../../src/git/repository.ts'
import { snapshot } from '../../src/git/snapshot.ts'
import { openTree, placeIn } from '../../src/git/tree.ts'
import { beside, defineBench, median } from '../bench.ts'
import type { Place } from '../bench.ts'

/** A claim of the project: docs/workspaces.md. */
const MOST = 1.5

const env = { PATH: process.env['PATH'], HOME: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com']
const run = (cwd: string, args: readonly string[], input?: string) =>
  execFileSync('git', [...identity, ...args], { cwd, env, encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'inherit'] })

function makeRepository(project: string, files: number): void {
  mkdirSync(project)
  run(project, ['init', '-q', '-b', 'main'])
  for (let at = 0; at < files; at++) {
    const folder = join(project, `d${at % 100}`, `e${Math.floor(at / 100) % 20}`)
    if (at < 2000) mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `f${at}.txt`), `${at} ${'line of a file '.repeat(at % 40)}\n`)
  }
  run(project, ['add', '-A'])
  run(project, ['commit', '-q', '-m', 'first'])
  run(project, ['repack', '-q', '-a', '-d'])
}

/** By one stream: two thousand commits are not what is measured. */
function addHistory(project: string, commits: number): void {
  const lines = ['reset refs/heads/main', 'from refs/heads/main^0', '']
  for (let at = 0; at < commits; at++) {
    lines.push('commit refs/heads/main', `committer B <b@example.com> ${1_700_000_000 + at} +0000`, 'data 2', 'c')
    lines.push(`M 100644 inline d0/e0/f0.txt`, `data ${String(at).length}`, `${at}`, '')
  }
  run(project, ['fast-import', '--quiet', '--force'], `${lines.join('\n')}\n`)
  run(project, ['reset', '-q', '--hard'])
}

/** One repository, and a folder beside it for the trees. */
interface Scene {
  readonly folder: string
  readonly project: string
  readonly git: Git
}

async function ours({ folder, project, git }: Scene): Promise<number[]> {
  const place = placeIn(join(folder, 'workspaces', 'run_1'))
  const steps = [performance.now()]
  const repo = await openRepository(git, project)
  const ref = 'refs/holdfast/tx/run_1'
  await setOwnRef(git, repo, ref, repo.commit)
  await openTree(git, repo, place, { base: repo.commit, branch: 'holdfast/run_1' })
  steps.push(performance.now())
  writeFileSync(join(place.tree, 'new.txt'), 'one change\n')
  const { commit } = await snapshot(git, repo, place, { parent: repo.commit, message: 'discarded', at: 0 })
  await setOwnRef(git, repo, ref, commit)
  steps.push(performance.now())
  await removeFolder(git, place.folder)
  steps.push(performance.now())
  await deleteRef(git, repo, ref)
  return steps.slice(1).map((each, at) => each - steps[at]!)
}

function theirs({ folder, project }: Scene): number[] {
  const tree = join(folder, 'worktree')
  const steps = [performance.now()]
  run(project, ['worktree', 'add', '-q', '-b', 'run-1', tree])
  steps.push(performance.now())
  run(project, ['worktree', 'remove', tree])
  steps.push(performance.now())
  run(project, ['branch', '-D', 'run-1'])
  return steps.slice(1).map((each, at) => each - steps[at]!)
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0)
const shown = (steps: readonly number[]) => steps.map((each) => each.toFixed(0).padStart(6)).join(' ')

async function measure(scene: Scene, rounds: number, what: string, { say }: Place) {
  const [own, other]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    const [a, b] =
      round % 2 === 0 ? [await ours(scene), theirs(scene)] : [theirs(scene), await ours(scene)].toReversed()
    say(`${what}  open, snapshot, remove ${shown(a!)}   add, remove ${shown(b!)} ms`)
    own.push(sum(a!))
    other.push(sum(b!))
  }
  return beside(what, 'ms', median(own), median(other), { most: MOST })
}

/**
 * One repository of many small files. In turns: `git worktree add` and `git worktree remove`; and opening a tree, taking the
 * snapshot that a discard keeps, and removing the folder. Then with a long history: it must make no difference.
 */
export const bench = defineBench({
  name: 'workspace',
  what: 'opening and discarding a git transaction beside git worktree',
  full: { files: 5_000, commits: 2_000, rounds: 3 },
  quick: { files: 1_000, commits: 100, rounds: 2 },
  async run({ files, commits, rounds }, place) {
    const folder = mkdtempSync(join(place.folder, 'workspace-'))
    const project = join(folder, 'project')
    const scene = { folder, project, git: { clock: systemClock, env, rooms: join(folder, 'rooms') } }
    makeRepository(project, files)
    await ours(scene)
    theirs(scene)
    const short = await measure(scene, rounds, `${files.toLocaleString('en-US')} files, short history`, place)
    addHistory(project, commits)
    const long = `${files.toLocaleString('en-US')} files, ${commits.toLocaleString('en-US')} commits`
    return [short, await measure(scene, rounds, long, place)]
  },
})
