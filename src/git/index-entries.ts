import type { Git, Sha } from './git.ts'
import { asRecords, type RawPath } from './paths.ts'
import type { Repository } from './repository.ts'
import { runGit, type GitOptions } from './run-git.ts'

/** What an index or a tree has under a path. */
export interface Entry {
  readonly mode: string
  readonly sha: Sha
}

interface NewEntry {
  readonly path: RawPath
  /** Null: it goes. */
  readonly entry: Entry | null
}

/** By name, whatever is there on the disk: a parent folder may have become a link that leads anywhere. */
export async function setEntries(
  git: Git,
  repo: Repository,
  desk: GitOptions,
  entries: readonly NewEntry[],
): Promise<void> {
  if (entries.length === 0) return
  const zero = '0'.repeat(repo.format === 'sha1' ? 40 : 64)
  // Removals first: a file may make room for a folder of its name.
  const sorted = entries.toSorted((a, b) => Number(a.entry !== null) - Number(b.entry !== null))
  const lines = sorted.map(({ path, entry }) => `${entry?.mode ?? '0'} ${entry?.sha ?? zero}\t${path}`)
  await runGit(git, ['update-index', '-z', '--index-info'], { ...desk, input: asRecords(lines) })
}
