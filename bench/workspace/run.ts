/**
 * What opening and discarding a transaction costs, beside what git itself takes for a working tree.
 *
 *   node bench/workspace/run.ts [--files N] [--commits N] [--rounds N] [--folder DIR] [--json FILE] [--check]
 *
 * One repository of many small files. In turns: `git worktree add` and `git worktree remove`; and opening a tree, taking the snapshot that a discard keeps, and
 * removing the folder. Then the same on a repository with a long history: it must make no difference. `--check` fails above 1.5 times.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { systemClock } from '../../src/base/clock.ts'
import type { Git } from '../../src/git/git.ts'
import { deleteRef, setOwnRef } from '../../src/git/refs.ts'
import { removeFolder } from '../../src/git/remove.ts'
import { openRepository } from '../../src/git/repository.ts'
import { snapshot } from '../../src/git/snapshot.ts'
import { openTree, placeIn } from '../../src/git/tree.ts'

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '50000' },
    commits: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '5' },
    folder: { type: 'string', default: tmpdir() },
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})
const [files, commits, rounds] = [values.files, values.commits, values.rounds].map(Number) as [number, number, number]
/** A claim of the project: docs/workspaces.md. */
const MOST = 1.5

const env = { PATH: process.env['PATH'], HOME: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com']
const run = (cwd: string, args: readonly string[], input?: string) =>
  execFileSync('git', [...identity, ...args], { cwd, env, encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'inherit'] })

function makeRepository(project: string): void {
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
function addHistory(project: string): void {
  const lines = ['reset refs/heads/main', 'from refs/heads/main^0', '']
  for (let at = 0; at < commits; at++) {
    lines.push('commit refs/heads/main', `committer B <b@example.com> ${1_700_000_000 + at} +0000`, 'data 2', 'c')
    lines.push(`M 100644 inline d0/e0/f0.txt`, `data ${String(at).length}`, `${at}`, '')
  }
  run(project, ['fast-import', '--quiet', '--force'], `${lines.join('\n')}\n`)
  run(project, ['reset', '-q', '--hard'])
}

const folder = mkdtempSync(join(values.folder, 'holdfast-bench-'))
const project = join(folder, 'project')
const git: Git = { clock: systemClock, env, rooms: join(folder, 'rooms') }

async function ours(): Promise<number[]> {
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

function theirs(): number[] {
  const tree = join(folder, 'worktree')
  const steps = [performance.now()]
  run(project, ['worktree', 'add', '-q', '-b', 'run-1', tree])
  steps.push(performance.now())
  run(project, ['worktree', 'remove', tree])
  steps.push(performance.now())
  run(project, ['branch', '-D', 'run-1'])
  return steps.slice(1).map((each, at) => each - steps[at]!)
}

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0)
const shown = (steps: readonly number[]) => steps.map((each) => each.toFixed(0).padStart(6)).join(' ')

interface Measured {
  readonly oursMs: number
  readonly theirsMs: number
  readonly ratio: number
}

async function measure(what: string): Promise<Measured> {
  const [own, other]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    const [a, b] = round % 2 === 0 ? [await ours(), theirs()] : [theirs(), await ours()].toReversed()
    console.log(`${what}  open, snapshot, remove ${shown(a!)}   add, remove ${shown(b!)} ms`)
    own.push(sum(a!))
    other.push(sum(b!))
  }
  const [oursMs, theirsMs] = [median(own), median(other)]
  return { oursMs, theirsMs, ratio: oursMs / theirsMs }
}

try {
  makeRepository(project)
  await ours()
  theirs()
  const short = await measure(`${files} files, short history`)
  addHistory(project)
  const long = await measure(`${files} files, ${commits} commits`)
  for (const [name, { oursMs, theirsMs, ratio }] of Object.entries({ short, long })) {
    console.log(
      `${name.padEnd(6)} ${oursMs.toFixed(0)} ms beside ${theirsMs.toFixed(0)} ms: ${ratio.toFixed(2)} times (at most ${MOST})`,
    )
  }
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify({ files, commits, short, long }, null, 2)}\n`)
  if (values.check && Math.max(short.ratio, long.ratio) > MOST) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
