import type { Git, Sha } from './git.ts'
import type { Repository } from './repository.ts'
import { atDesk } from './room.ts'
import { identity, runGit } from './run-git.ts'

export interface NewCommit {
  readonly tree: Sha
  readonly parents: readonly Sha[]
  readonly at: number
  readonly message: string | Buffer
  /** As it stands in a commit; ours, unless given. */
  readonly author?: Buffer
  /** In which its author and message are written; UTF-8, unless given. */
  readonly encoding?: string | undefined
  readonly objects?: string | undefined
}

/** Writes a commit byte by byte: nothing in it comes from an environment, so the same work is the same commit. */
export async function writeCommit(git: Git, repo: Repository, commit: NewCommit): Promise<Sha> {
  const parents = commit.parents.map((parent) => `parent ${parent}\n`).join('')
  const encoding = commit.encoding === undefined ? '' : `encoding ${commit.encoding}\n`
  const content = Buffer.concat([
    Buffer.from(`tree ${commit.tree}\n${parents}author `),
    commit.author ?? Buffer.from(identity(commit.at)),
    Buffer.from(`\ncommitter ${identity(commit.at)}\n${encoding}\n`, 'latin1'),
    typeof commit.message === 'string' ? Buffer.from(`${commit.message.trimEnd()}\n`) : commit.message,
  ])
  const desk = atDesk(repo, { objects: commit.objects })
  return (await runGit(git, ['hash-object', '-t', 'commit', '-w', '--stdin'], { ...desk, input: content })).text
}

export interface ReadCommit {
  readonly tree: Sha
  readonly parents: readonly Sha[]
  readonly author: Buffer
  readonly encoding: string | undefined
  readonly message: Buffer
}

export async function readCommit(git: Git, repo: Repository, commit: Sha, objects?: string): Promise<ReadCommit> {
  const { stdout } = await runGit(git, ['cat-file', 'commit', commit], atDesk(repo, { objects }))
  const gap = stdout.indexOf('\n\n')
  const head = stdout.subarray(0, gap === -1 ? stdout.length : gap).toString('latin1')
  const all = (name: string) => [...head.matchAll(new RegExp(`^${name} (.*)$`, 'gm'))].map(([, value]) => value!)
  return {
    tree: all('tree')[0] ?? '',
    parents: all('parent'),
    author: Buffer.from(all('author')[0] ?? '', 'latin1'),
    encoding: all('encoding')[0],
    message: gap === -1 ? Buffer.alloc(0) : stdout.subarray(gap + 2),
  }
}

export async function treeOf(git: Git, repo: Repository, commit: Sha, objects?: string): Promise<Sha> {
  return (await runGit(git, ['rev-parse', '--verify', `${commit}^{tree}`], atDesk(repo, { objects }))).text
}
