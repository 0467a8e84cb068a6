import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { errorCode } from '../base/files.ts'
import { extrasOf, type Extras } from './extras.ts'
import type { Git, Sha } from './git.ts'
import { OURS } from './refs.ts'
import type { Repository } from './repository.ts'
import { quotedPath, runGit } from './run-git.ts'

export interface PrivateRepository {
  /** On a branch of its own, or detached. */
  readonly head: { readonly branch?: string; readonly commit: Sha }
  /** Not to be added by an agent that adds everything. */
  readonly extras: Extras
  /** Of a shadow: looked at before the user's. */
  readonly objects?: string | undefined
}

/**
 * A repository that borrows the objects of the user's and has a copy of its refs: whatever is done to branches, history, settings or to all of it does
 * not reach the user's. Made of a few files, however long the history is.
 */
export async function makePrivate(
  git: Git,
  repo: Repository,
  folder: string,
  options: PrivateRepository,
): Promise<void> {
  const { branch, commit } = options.head
  for (const part of ['', 'info', 'refs/heads', 'refs/tags', 'objects/info', 'objects/pack']) {
    await mkdir(join(folder, part), { recursive: true, mode: 0o700 })
  }
  const objects = [...(options.objects === undefined ? [] : [options.objects]), join(repo.commonDir, 'objects')]
  const [refs, settings, excludes] = [
    await copyOfRefs(git, repo, options.head),
    await ownSettings(git, repo),
    await ownExcludes(repo, options.extras),
  ]
  await Promise.all([
    writeFile(join(folder, 'HEAD'), branch === undefined ? `${commit}\n` : `ref: refs/heads/${branch}\n`),
    writeFile(join(folder, 'objects/info/alternates'), objects.map((each) => `${quotedPath(each)}\n`).join('')),
    writeFile(join(folder, 'packed-refs'), refs),
    writeFile(join(folder, 'config'), settings),
    writeFile(join(folder, 'info/exclude'), excludes),
    copyFile(join(repo.commonDir, 'shallow'), join(folder, 'shallow')).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error
    }),
  ])
}

async function copyOfRefs(git: Git, repo: Repository, head: PrivateRepository['head']): Promise<string> {
  const { text } = await runGit(git, ['for-each-ref', '--format=%(objectname) %(refname)'], { gitDir: repo.commonDir })
  const own = head.branch === undefined ? undefined : `refs/heads/${head.branch}`
  const refs = text
    .split('\n')
    .map((line): [string, string] => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))])
    .filter(([ref]) => ref.startsWith('refs/') && !ref.startsWith(OURS) && ref !== own)
  const all = own === undefined ? refs : [...refs, [own, head.commit] as [string, string]]
  // Git searches in it by bytes.
  const sorted = all.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return `# pack-refs with: sorted \n${sorted.map(([ref, sha]) => `${sha} ${ref}\n`).join('')}`
}

/** Of the repository's own settings: where others are, and who commits. */
const TAKEN = '^(remote\\..*\\.(url|pushurl|fetch)|branch\\..*\\.(remote|merge)|user\\.(name|email))$'
const LOOKS = '^core\\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol)$'

async function ownSettings(git: Git, repo: Repository): Promise<string> {
  const { stdout } = await runGit(
    git,
    ['config', '--local', '-z', '--get-regexp', `(${TAKEN})|(${LOOKS})`],
    { gitDir: repo.commonDir },
    [0, 1],
  )
  const taken = stdout
    .toString()
    .split('\0')
    .flatMap((each) => setting(repo, each))
  const is256 = repo.format === 'sha256'
  return [
    `[core]\n\trepositoryformatversion = ${is256 ? 1 : 0}\n\tbare = false\n\tlogallrefupdates = true\n`,
    is256 ? '[extensions]\n\tobjectFormat = sha256\n' : '',
    // What is borrowed can not be known to be unused.
    '[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n',
    ...taken,
  ].join('')
}

function setting(repo: Repository, entry: string): string[] {
  const gap = entry.indexOf('\n')
  if (gap === -1) return []
  const [key, value] = [entry.slice(0, gap), entry.slice(gap + 1)]
  const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')]
  const [section, name] = [key.slice(0, first), key.slice(last + 1)]
  const isUrl = name.endsWith('url')
  // A transport that is a program.
  if (isUrl && value.startsWith('ext::')) return []
  const own = isUrl && /^\.\.?\//.test(value) ? resolve(repo.top, value) : value
  const head = last === first ? `[${section}]` : `[${section} "${quoted(key.slice(first + 1, last))}"]`
  return [`${head}\n\t${name} = "${quoted(own).replaceAll('\n', '\\n')}"\n`]
}

const quoted = (text: string) => text.replace(/["\\]/g, '\\$&')

/** What the user ignores here alone, and what we brought. */
async function ownExcludes(repo: Repository, extras: Extras): Promise<string> {
  const users = await readFile(join(repo.commonDir, 'info/exclude'), 'utf8').catch(() => '')
  const brought = extrasOf(extras).map((path) => `/${path.replace(/[[\]*?\\!# ]/g, '\\$&')}\n`)
  return `${users}${users === '' || users.endsWith('\n') ? '' : '\n'}${brought.join('')}`
}
