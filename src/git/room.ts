import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
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
  if (await isWhole(room, config)) return room
  await ensureFolder(git.rooms)
  const made = await mkdtemp(join(git.rooms, '.new-'))
  const torn = `${made}.torn`
  try {
    await fill(made, commonDir, config)
    // What is there is another's, who was quicker; or a power loss has left something else of it, with which git could not work ever.
    if ((await isRenamed(made, room)) || (await isWhole(room, config))) return room
    await isRenamed(room, torn)
    await isRenamed(made, room)
    return room
  } finally {
    await Promise.all([made, torn].map((each) => rm(each, { recursive: true, force: true })))
  }
}

const HEAD = 'ref: refs/heads/none\n'

async function fill(made: string, commonDir: string, config: string): Promise<void> {
  await writeFile(join(made, 'HEAD'), HEAD)
  await writeFile(join(made, 'config'), config)
  await mkdir(join(made, 'refs'))
  await mkdir(join(made, 'objects'))
  // What the user ignores for this repository alone, and attributes of that kind.
  await symlink(join(commonDir, 'info'), join(made, 'info'))
}

/** It is not synced: it is looked at before it is used. */
async function isWhole(room: string, config: string): Promise<boolean> {
  const read = (name: string) => readFile(join(room, name), 'utf8').catch(() => undefined)
  const names: readonly string[] = await readdir(room).catch(() => [])
  return (
    ['refs', 'objects', 'info'].every((name) => names.includes(name)) &&
    (await read('HEAD')) === HEAD &&
    (await read('config')) === config
  )
}

const TAKEN_OR_GONE: readonly unknown[] = ['ENOTEMPTY', 'EEXIST', 'ENOENT']

async function isRenamed(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (!TAKEN_OR_GONE.includes(errorCode(error))) throw error
    return false
  }
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
