import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { runCaptured, type CapturedEnd } from '../processes/captured-command.ts'
import type { Git } from './git.ts'

export interface GitOptions {
  readonly cwd?: string
  /** Where git works: these become GIT_DIR and so on. */
  readonly gitDir?: string
  readonly workTree?: string
  readonly index?: string
  readonly objects?: string
  readonly alternate?: string
  readonly shallow?: string
  /** Who writes a commit, and when. */
  readonly at?: number
  /** Several values of one: as several settings of that name. */
  readonly settings?: Readonly<Record<string, string | readonly string[]>>
  /** Reads the user's own configuration: only for `git config`, which runs nothing. */
  readonly asUser?: boolean
  readonly input?: Uint8Array | string | { readonly file: string }
  readonly timeoutMs?: number
  readonly maxBytes?: number
}

export interface GitEnd extends CapturedEnd {
  readonly code: number
  readonly text: string
}

/**
 * What a repository's own settings could make git run or reach, taken out of its hands. Filters, merge drivers and diff programs have names of their own and cannot be
 * listed here: whatever touches file contents runs in a room (room.ts), where no setting of the repository is read at all.
 */
const HARDENED: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.untrackedCache': 'false',
  'core.askPass': '',
  'core.editor': 'false',
  'core.pager': 'cat',
  'core.sshCommand': 'false',
  'core.gitProxy': 'false',
  'core.alternateRefsCommand': 'false',
  'credential.helper': '',
  'gpg.program': 'false',
  'commit.gpgSign': 'false',
  'tag.gpgSign': 'false',
  'protocol.allow': 'never',
  'submodule.recurse': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  // About GIT_GRAFT_FILE below: eight lines with every command, before what went wrong.
  'advice.graftFileDeprecated': 'false',
  // What a ref of ours names is on disk before the ref is; many objects written together are synced together.
  'core.fsync': 'objects,reference',
  'core.fsyncMethod': 'batch',
}

const PLAIN: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_GRAFT_FILE: '/dev/null',
  GIT_NO_LAZY_FETCH: '1',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_ALLOW_PROTOCOL: '',
  GIT_PROTOCOL_FROM_USER: '0',
  HOME: '/dev/null',
}

const NO_SETTINGS_OF_OTHERS = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }

/** Names in a commit of ours. */
const NAME = 'Holdfast'
const EMAIL = 'holdfast@localhost'
export const identity = (at: number) => `${NAME} <${EMAIL}> ${Math.floor(at / 1000)} +0000`

/** Runs git and throws what went wrong, unless it ended with one of the given codes. */
export async function runGit(
  git: Git,
  args: readonly string[],
  options: GitOptions = {},
  fine: readonly number[] = [0],
): Promise<GitEnd> {
  const end = await askGit(git, args, options)
  if (fine.includes(end.code)) return end
  throw await failureOf(args, end, options)
}

/** Runs git and answers how it ended. One that did not end by itself gave no answer: its silence must not be taken for a no. */
export async function askGit(git: Git, args: readonly string[], options: GitOptions = {}): Promise<GitEnd> {
  const end = await tryGit(git, args, options)
  if (end.cut === undefined && end.code !== null) {
    return { ...end, code: end.code, text: end.stdout.toString().trim() }
  }
  throw await failureOf(args, end, options)
}

/** What went wrong, for people. */
export async function failureOf(
  args: readonly string[],
  end: CapturedEnd,
  options: GitOptions,
): Promise<HoldfastError> {
  return end.cut === undefined && (await isFull(options)) ? full(args, end) : trouble(args, end)
}

/** Runs git, whatever comes of it. */
export function tryGit(git: Git, args: readonly string[], options: GitOptions = {}): Promise<CapturedEnd> {
  const { input } = options
  return runCaptured(['git', ...args], {
    clock: git.clock,
    cwd: options.cwd ?? options.workTree ?? options.gitDir ?? '/',
    env: environment(git, options),
    timeoutMs: options.timeoutMs ?? LIMITS.gitMs,
    maxBytes: options.maxBytes ?? LIMITS.gitOutputBytes,
    signal: git.signal,
    ...(input === undefined ? {} : { input: typeof input === 'string' ? Buffer.from(input) : input }),
  })
}

function environment(git: Git, options: GitOptions): Record<string, string> {
  const places = {
    GIT_DIR: options.gitDir,
    GIT_WORK_TREE: options.workTree,
    GIT_INDEX_FILE: options.index,
    GIT_OBJECT_DIRECTORY: options.objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: options.alternate === undefined ? undefined : quotedPath(options.alternate),
    GIT_SHALLOW_FILE: options.shallow,
    PATH: git.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    TMPDIR: git.env['TMPDIR'],
    ...(options.asUser === true ? userSettings(git) : {}),
  }
  const settings = Object.entries({ ...HARDENED, ...options.settings }).flatMap(([key, values]) =>
    [values].flat().map((value) => [key, value] as const),
  )
  return {
    ...PLAIN,
    ...(options.asUser === true ? {} : NO_SETTINGS_OF_OTHERS),
    ...Object.fromEntries(Object.entries(places).filter((entry): entry is [string, string] => entry[1] !== undefined)),
    ...(options.at === undefined ? {} : writtenBy(options.at)),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  }
}

/** What git finds for its user, who may have it in one of two places: so no place is named unless the user names one. */
function userSettings(git: Git): Record<string, string | undefined> {
  const { HOME, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM } = git.env
  return { HOME: HOME ?? '/dev/null', XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM }
}

function writtenBy(at: number): Record<string, string> {
  const date = `${Math.floor(at / 1000)} +0000`
  return {
    GIT_AUTHOR_NAME: NAME,
    GIT_AUTHOR_EMAIL: EMAIL,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: NAME,
    GIT_COMMITTER_EMAIL: EMAIL,
    GIT_COMMITTER_DATE: date,
  }
}

/** In a list that colons part, and in `info/alternates`, where a quote begins a quoted name. */
export const quotedPath = (path: string) => (/[":\n\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path)

const FULL = /no space left on device|disk quota exceeded/i
const FORBIDDEN = /permission denied|read-only file system|operation not permitted/i

const full = (args: readonly string[], end: CapturedEnd) =>
  new HoldfastError('files/full', `${commandIn(args)}: there is no space left on the disk: ${lastWords(end)}`, {
    remedy: 'free some space, then try again',
  })

const commandIn = (args: readonly string[]) => `git ${args.find((each) => !each.startsWith('-')) ?? ''}`
const lastWords = ({ stderr }: CapturedEnd) => stderr.trim().split('\n').slice(-4).join('; ').slice(0, 600)

/** Not every message of git says why something could not be written. */
async function isFull({ index, workTree, objects, gitDir }: GitOptions): Promise<boolean> {
  const places = [index === undefined ? undefined : dirname(index), workTree, objects, gitDir]
  const free = await Promise.all(places.map((place) => freeBytes(place)))
  return free.some((bytes) => bytes < PAGE)
}
const PAGE = 16 * 1024

const freeBytes = (place: string | undefined): Promise<number> =>
  place === undefined
    ? Promise.resolve(Infinity)
    : statfs(place).then(
        ({ bavail, bsize }) => bavail * bsize,
        () => Infinity,
      )

function trouble(args: readonly string[], end: CapturedEnd): HoldfastError {
  const command = commandIn(args)
  if (end.cut === 'absent') {
    return new HoldfastError('git/missing', `git could not be started (${end.stderr})`, {
      remedy: 'install git 2.39 or newer, and see that it is found by PATH',
    })
  }
  if (end.cut === 'cancelled') {
    return new HoldfastError('git/cancelled', `${command} was cancelled`, {
      remedy: 'start it again if it is still wanted',
    })
  }
  if (end.cut === 'timeout') {
    return new HoldfastError('git/timeout', `${command} took too long and was ended`, {
      remedy: 'look whether the disk hangs; then try again',
      retry: { afterMs: 1_000 },
    })
  }
  if (end.cut === 'output')
    return new HoldfastError('git/output', `${command} printed more than can be held`, {
      remedy: 'look at it with git itself',
    })
  const said = lastWords(end)
  if (FULL.test(end.stderr)) return full(args, end)
  if (FORBIDDEN.test(end.stderr)) {
    return new HoldfastError('files/not-writable', `${command}: ${said}`, {
      remedy: 'check who owns the repository and its permissions',
    })
  }
  // Killed by somebody, as a machine without memory does: nothing is wrong with what it was about.
  if (end.code === null) {
    return new HoldfastError('git/failed', `${command} was killed by a signal`, {
      remedy: 'look whether the machine has memory left; then try again',
      retry: { afterMs: 1_000 },
    })
  }
  return new HoldfastError('git/failed', `${command} ended with ${end.code}: ${said}`, {
    remedy: 'mend what git complains of; if it is not clear what that is, check the repository with git fsck',
  })
}
