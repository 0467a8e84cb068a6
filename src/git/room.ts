import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'

import { ensureFolder, errorCode } from '../base/files.ts'
import type { Git } from './git.ts'
import { runGit, type GitOptions } from './run-git.ts'
import type { Repository } from './repository.ts'

/*
 * A room is an empty git folder of ours: no refs, no hooks, and a configuration in which only what says how files look was taken over from
 * the user. In it git works on the user's objects with an index and a working tree that are named to it. A repository can define
 * filters, merge drivers, diff programs and monitors under any name, and include other files: in a room none of that is read.
 */

/** How the room is used: which objects, which files, which index. */
export interface Desk {
  readonly workTree?: string
  readonly index?: string
  /** Where new objects go, with the repository's own behind them; unless given, into the repository. */
  readonly objects?: string | undefined
}

export function atDesk(repo: Repository, desk: Desk = {}): GitOptions {
  const own = join(repo.commonDir, 'objects')
  return {
    gitDir: repo.room,
    shallow: join(repo.commonDir, 'shallow'),
    ...(desk.objects === undefined ? { objects: own } : { objects: desk.objects, alternate: own }),
    ...(desk.workTree === undefined ? {} : { workTree: desk.workTree }),
    ...(desk.index === undefined ? {} : { index: desk.index }),
  }
}

/** Of all settings those that say how files look, and those that say what we cannot work with. */
const WANTED =
  '^(core\\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|excludesfile|attributesfile|sparsecheckout)|' +
  'extensions\\.(objectformat|partialclone|refstorage)|remote\\..*\\.promisor)$'
const KEPT = ['filemode', 'symlinks', 'ignorecase', 'precomposeunicode', 'autocrlf', 'eol'] as const

export type Settings = ReadonlyMap<string, string>

export async function readSettings(git: Git, gitDir: string): Promise<Settings> {
  const { stdout } = await runGit(git, ['config', '-z', '--get-regexp', WANTED], { gitDir, asUser: true }, [0, 1])
  return new Map(
    stdout
      .toString()
      .split('\0')
      .filter((each) => each !== '')
      .map((each): [string, string] => {
        const [key = '', ...value] = each.split('\n')
        // A key with no value means true.
        return [key, value.length === 0 ? 'true' : value.join('\n')]
      }),
  )
}

export async function makeRoom(git: Git, commonDir: string, settings: Settings): Promise<string> {
  const config = configOf(git, settings)
  const name = createHash('sha256').update(`${commonDir}\n${config}`).digest('hex').slice(0, 24)
  const room = join(git.rooms, name)
  await ensureFolder(git.rooms)
  const made = await mkdtemp(join(git.rooms, '.new-'))
  try {
    await writeFile(join(made, 'HEAD'), 'ref: refs/heads/none\n')
    await writeFile(join(made, 'config'), config)
    await mkdir(join(made, 'refs'))
    await mkdir(join(made, 'objects'))
    // What the user ignores for this repository alone, and attributes of that kind.
    await symlink(join(commonDir, 'info'), join(made, 'info'))
    await rename(made, room)
  } catch (error) {
    await rm(made, { recursive: true, force: true })
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error
  }
  return room
}

function configOf(git: Git, settings: Settings): string {
  const is256 = settings.get('extensions.objectformat') === 'sha256'
  const core = [
    ['repositoryformatversion', is256 ? '1' : '0'],
    ['bare', 'false'],
    ...KEPT.flatMap((key) => (settings.has(`core.${key}`) ? [[key, settings.get(`core.${key}`)!]] : [])),
    ['excludesFile', usersFile(git, settings.get('core.excludesfile'), 'ignore')],
    ['attributesFile', usersFile(git, settings.get('core.attributesfile'), 'attributes')],
    // Larger ones are streamed, and not held in memory.
    ['bigFileThreshold', '32m'],
  ]
  const lines = core.map(([key, value]) => `\t${key} = "${value!.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"\n`)
  return `[core]\n${lines.join('')}${is256 ? '[extensions]\n\tobjectFormat = sha256\n' : ''}`
}

function usersFile(git: Git, named: string | undefined, usual: string): string {
  const home = git.env['HOME'] ?? '/dev/null'
  const path = named === undefined ? join(configHome(git), 'git', usual) : named.replace(/^~(?=\/)/, home)
  return isAbsolute(path) ? path : '/dev/null'
}

const configHome = (git: Git) => git.env['XDG_CONFIG_HOME'] || join(git.env['HOME'] ?? '/dev/null', '.config')
