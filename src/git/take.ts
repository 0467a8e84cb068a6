import { constants } from 'node:fs'
import { access, lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { LIMITS } from '../base/limits.ts'
import type { Git, Sha } from './git.ts'
import { setEntries } from './index-entries.ts'
import { onOwnIndex } from './own-index.ts'
import { asRecords, isWithin, onDisk, rawPath, records, type RawPath } from './paths.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { askGit, runGit, tryGit, type GitOptions } from './run-git.ts'

/*
 * What is in a folder, as a tree object. Git looks through the folder with an index of ours; which of what it finds is taken is decided here, path by path,
 * because `git add --all` ends at the first thing that it cannot add, and starts git in nested repositories.
 */

export interface Taking {
  readonly workTree: string
  /** Ours. Missing: it is made from `parent`, and every file is read. */
  readonly index: string
  readonly objects?: string | undefined
  readonly parent: Sha
  readonly apart?: readonly string[]
  readonly largestFile?: number
  /** The index of somebody who may have added ignored files on purpose. */
  readonly othersIndex?: string
}

export interface Omission {
  readonly path: RawPath
  readonly why: string
}

export interface Taken {
  readonly tree: Sha
  readonly leftOut: readonly Omission[]
  readonly ignored: number
}

export const takeTree = (git: Git, repo: Repository, taking: Taking): Promise<Taken> =>
  onOwnIndex(taking.index, 'as-it-is', (index) => take(git, repo, { ...taking, index }))

async function take(git: Git, repo: Repository, taking: Taking): Promise<Taken> {
  const desk = atDesk(repo, taking)
  const seen = await lookThrough(git, desk, taking)
  await git.point?.('snapshot/looked')
  const { add, remove, leftOut } = await sortOut(taking, seen)
  const gone = remove.map((path) => ({ path, entry: null }))
  await setEntries(git, repo, desk, gone)
  if (add.length > 0) {
    const verbatim = ['update-index', '--add', '--replace', '--remove', '-z', '--stdin']
    await runGit(git, verbatim, { ...desk, input: asRecords(add) })
  }
  await git.point?.('snapshot/objects-written')
  const { text } = await runGit(git, ['write-tree'], desk)
  return { tree: text, leftOut, ignored: seen.ignored }
}

interface Seen {
  readonly changed: readonly RawPath[]
  readonly gone: readonly RawPath[]
  readonly others: readonly RawPath[]
  readonly ignored: number
  readonly closed: readonly RawPath[]
  readonly submodules: readonly RawPath[]
}

async function lookThrough(git: Git, desk: GitOptions, taking: Taking): Promise<Seen> {
  const { stdout, stderr } = await statusOf(git, desk, taking)
  const [changed, gone, others]: [RawPath[], RawPath[], RawPath[]] = [[], [], []]
  const apart = (taking.apart ?? []).map(rawPath)
  const forced = (await forcedBy(git, desk, taking)).filter((path) => !isWithin(path, apart))
  let ignored = 0
  for (const line of records(stdout)) {
    const [state, path] = [line.slice(0, 2), line.slice(3)]
    if (isWithin(path.replace(/\/$/, ''), apart)) continue
    if (state === '??') others.push(path)
    else if (state === '!!') ignored += forced.includes(path) ? 0 : 1
    else if (state[1] === 'D') gone.push(path)
    // The first letter compares with a commit, and there is none in a room.
    else if (state[1] !== ' ') changed.push(path)
  }
  const closed = [...stderr.matchAll(/could not open directory '(.*?)\/?':/g)].map(([, path]) => rawPath(path!))
  const submodules = await filledSubmodules(git, desk, taking)
  return { changed, gone, others: [...new Set([...others, ...forced])], ignored, closed, submodules }
}

/** Submodules are never entered: git would start itself in them, with their settings. */
const LOOK = ['status', '--porcelain', '-z', '--untracked-files=all', '--ignored=matching', '--no-renames']

async function statusOf(git: Git, desk: GitOptions, { index, parent }: Taking) {
  const asked = [...LOOK, '--ignore-submodules=all']
  const isThere = (await lstat(index).catch(() => undefined)) !== undefined
  const first = isThere ? await tryGit(git, asked, desk) : undefined
  if (first?.code === 0) return first
  // Missing, or torn by a power loss: it can be made again, only every file is read then.
  await rm(index, { force: true })
  await runGit(git, ['read-tree', parent], desk)
  return runGit(git, asked, desk)
}

/** Ignored files that the agent added all the same: it wants them. Its index may be anything; then there are none. */
async function forcedBy(git: Git, desk: GitOptions, { othersIndex: index }: Taking): Promise<RawPath[]> {
  if (index === undefined) return []
  const end = await askGit(git, ['ls-files', '-z', '-c', '-i', '--exclude-standard'], { ...desk, index })
  return end.code === 0 ? records(end.stdout) : []
}

async function filledSubmodules(git: Git, desk: GitOptions, taking: Taking): Promise<RawPath[]> {
  if ((await lstat(join(taking.workTree, '.gitmodules')).catch(() => undefined)) === undefined) return []
  const { stdout } = await runGit(git, ['ls-files', '-s', '-z'], desk)
  const links = records(stdout).filter((line) => line.startsWith('160000 '))
  const paths = links.map((line) => line.slice(line.indexOf('\t') + 1))
  const filled = await Promise.all(paths.map((path) => lstat(onDisk(taking.workTree, `${path}/.git`)).catch(() => {})))
  return paths.filter((_, at) => filled[at] !== undefined)
}

interface Sorted {
  readonly add: readonly RawPath[]
  readonly remove: readonly RawPath[]
  readonly leftOut: readonly Omission[]
}

async function sortOut(taking: Taking, seen: Seen): Promise<Sorted> {
  const wanted = [...seen.changed, ...seen.others]
  const add: RawPath[] = []
  const leftOut: Omission[] = [
    ...seen.closed.map((path) => ({ path, why: 'a folder that may not be read' })),
    ...seen.submodules.map((path) => ({ path, why: 'a submodule: what is in it is a repository of its own' })),
  ]
  for (let at = 0; at < wanted.length; at += TOGETHER) {
    const paths = wanted.slice(at, at + TOGETHER)
    const verdicts = await Promise.all(paths.map((path) => whyNot(taking, path)))
    paths.forEach((path, index) => {
      const why = verdicts[index]
      if (why === undefined) add.push(path)
      else if (why !== 'gone') leftOut.push({ path, why })
    })
  }
  return { add, remove: seen.gone, leftOut }
}

/** Files that are looked at at the same time: more would only queue for the runtime's few threads. */
const TOGETHER = 64

/** Names that git takes for its own folder on some system, and refuses everywhere. */
const REFUSED = /(^|\/)(\.git[. ]*|git~1)(:.*)?(\/|$)/i

/** Why a path is not taken; `gone` needs no mention. */
async function whyNot(taking: Taking, path: RawPath): Promise<string | undefined> {
  if (path.endsWith('/')) return 'a repository inside of the repository'
  if (REFUSED.test(path)) return 'a name that git refuses'
  const place = onDisk(taking.workTree, path)
  const found = await lstat(place).catch(() => undefined)
  if (found === undefined) return 'gone'
  if (found.isSymbolicLink()) return path.endsWith('.gitmodules') ? 'a name that git refuses for a link' : undefined
  // Git names a folder only if it is one: files in other folders come by their own names.
  if (found.isDirectory()) return 'a repository inside of the repository'
  if (!found.isFile()) return 'neither a file nor a link'
  const limit = taking.largestFile ?? LIMITS.largestFileBytes
  if (found.size > limit) return `${found.size} bytes, more than the limit of ${limit}`
  return access(place, constants.R_OK).then(
    () => undefined,
    () => 'a file that may not be read',
  )
}
