import { resolve } from 'node:path'

import { Option } from 'commander'
import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { misplaced } from '../../config/workspace.ts'
import { WORKSPACE_MODES } from '../../workspace/workspace.ts'
import type { CheckRequest, WorkspaceMode, WorkspaceRequest } from '../../workspace/workspace.ts'
import type { Context } from '../around/context.ts'
import { durationOption } from '../words/duration-option.ts'
import { visible } from '../words/output.ts'

/** What `run` is told about files. */
export interface WorkspaceFlags {
  readonly workspace?: string
  readonly workspaceMode?: WorkspaceMode
  readonly check?: string
  readonly checkFile?: string
  readonly checkTimeout?: number
  readonly init?: boolean
  readonly workspaceCopy?: readonly string[]
  readonly workspaceLink?: readonly string[]
  readonly workspaceCommits?: 'squash' | 'keep'
  readonly workspaceKeep?: number
}

const several = (path: string, before: readonly string[] = []) => [...before, path]

export function addWorkspaceOptions(own: Command): Command {
  return own
    .option(
      '--workspace <dir>',
      'a folder in a git repository: what the run does to its files lands whole, or not at all',
    )
    .addOption(
      new Option(
        '--workspace-mode <mode>',
        'transaction: in a tree of its own. shadow (default): in yours, and only what a transaction would have done is recorded',
      ).choices(WORKSPACE_MODES),
    )
    .option('--check <command>', 'what must succeed before anything lands, for /bin/sh, as "npm test"')
    .option('--check-file <path>', 'the same: a file of the repository, run as it was before the command started')
    .option('--check-timeout <duration>', 'how long the check may take (default: 10m)', durationOption)
    .option('--init', 'make the folder a git repository if it is in none, with one commit of what is there')
    .option('--workspace-copy <path>', 'copy what git ignores and the run needs, as .env; may be given again', several)
    .option('--workspace-link <path>', 'link to yours instead, as node_modules; may be given again', several)
    .addOption(
      new Option(
        '--workspace-commits <which>',
        'squash (default): one commit of everything. keep: those that the run made itself',
      ).choices(['squash', 'keep']),
    )
    .option('--workspace-keep <duration>', 'how long discarded work can be brought back (default: 14d)', durationOption)
}

const BELONGING: readonly (readonly [keyof WorkspaceFlags, string])[] = [
  ['workspaceMode', '--workspace-mode'],
  ['check', '--check'],
  ['checkFile', '--check-file'],
  ['checkTimeout', '--check-timeout'],
  ['init', '--init'],
  ['workspaceCopy', '--workspace-copy'],
  ['workspaceLink', '--workspace-link'],
  ['workspaceCommits', '--workspace-commits'],
  ['workspaceKeep', '--workspace-keep'],
]

/** What the flags ask for; everything that can be wrong with it is said before anything is stored. */
export function workspaceAsked(flags: WorkspaceFlags): WorkspaceRequest | undefined {
  const { workspace, workspaceMode: mode = 'shadow', checkTimeout, workspaceCommits: commits, workspaceKeep } = flags
  if (workspace === undefined) {
    const stray = BELONGING.find(([flag]) => flags[flag] !== undefined)
    if (stray !== undefined) throw wrong(`${stray[1]} is for --workspace`, 'say which, as --workspace .')
    return undefined
  }
  const check = checkAsked(flags)
  if (checkTimeout !== undefined && check === undefined)
    throw wrong('--check-timeout is for --check', 'say what to check')
  const [copy, link] = [
    pathsAsked('--workspace-copy', flags.workspaceCopy),
    pathsAsked('--workspace-link', flags.workspaceLink),
  ]
  return {
    root: resolve(workspace),
    mode,
    ...(check === undefined ? {} : { check }),
    ...(checkTimeout === undefined ? {} : { checkTimeoutMs: checkTimeout }),
    ...(copy.length === 0 ? {} : { copy }),
    ...(link.length === 0 ? {} : { link }),
    ...(commits === undefined ? {} : { commits }),
    ...(workspaceKeep === undefined ? {} : { keepMs: workspaceKeep }),
  }
}

function checkAsked({ check, checkFile }: WorkspaceFlags): CheckRequest | undefined {
  if (check !== undefined && checkFile !== undefined) throw wrong('--check and --check-file are two checks', 'say one')
  if (check !== undefined && check.trim() === '') throw wrong('--check is empty', 'as in --check "npm test"')
  if (checkFile !== undefined) return { file: pathAsked('--check-file', checkFile) }
  return check === undefined ? undefined : { command: check }
}

const pathsAsked = (flag: string, paths: readonly string[] = []) => paths.map((path) => pathAsked(flag, path))

function pathAsked(flag: string, path: string): string {
  const problem = misplaced(path)
  if (problem !== undefined) throw wrong(`${flag} "${path}" ${problem.what}`, problem.remedy)
  return path
}

const wrong = (message: string, remedy: string) => new HoldfastError('usage/workspace', message, { remedy })

/** Looks at the repository before anything is stored, and says once what the run will not see. */
export async function lookAtRepository(
  { runtime, output }: Context,
  { root, mode }: WorkspaceRequest,
  init: boolean,
): Promise<void> {
  const { top, uncommitted } = await (await runtime.workspaces()).look(root, { init })
  if (mode !== 'transaction' || uncommitted === 0) return
  const where = `in ${visible(top)}`
  const what =
    uncommitted === 1
      ? `1 uncommitted change ${where} stays where it is`
      : `${uncommitted} uncommitted changes ${where} stay where they are`
  output.note(`${what}: the run starts from the last commit and does not see ${uncommitted === 1 ? 'it' : 'them'}`)
}
