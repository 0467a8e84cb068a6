import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { GitWorld } from './git-world.ts'

/** A `git` that stands before the real one, for the process that is under test alone. */
export interface GitTrap {
  /** With the trap first in its PATH. */
  readonly env: Readonly<Record<string, string>>
  /** How many git commands were started. */
  readonly count: number
  readonly isSprung: boolean
  /** Which it was. */
  readonly killed: string
}

export const REAL_GIT = execFileSync('/bin/sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()

/**
 * `condition` is a line of shell that sees `$n`, the how-manieth git command this is, and its arguments; where it holds, `act` is done, once. `$PPID` is the
 * process under test; the command is a process group of its own.
 */
export function trapGit({ world }: { readonly world: GitWorld }, condition: string, act: string): GitTrap {
  const folder = mkdtempSync(join(world.folder, 'trap'))
  const [calls, sprung] = [join(folder, 'calls'), join(folder, 'sprung')]
  const script = `#!/bin/sh
echo "$1" >> ${calls}
n=$(wc -l < ${calls})
if ${condition} && mkdir ${sprung} 2>/dev/null; then
echo "$1" > ${sprung}/which
${act}
fi
exec ${REAL_GIT} "$@"
`
  writeFileSync(join(folder, 'git'), script, { mode: 0o755 })
  return {
    env: { ...world.env, PATH: `${folder}:${world.env['PATH']}` },
    get count() {
      return existsSync(calls) ? readFileSync(calls, 'utf8').split('\n').length - 1 : 0
    },
    get killed() {
      return existsSync(`${sprung}/which`) ? readFileSync(`${sprung}/which`, 'utf8').trim() : ''
    },
    get isSprung() {
      return existsSync(sprung)
    },
  }
}

/** Killed before it did anything, and killed when it had done everything and not yet said so. */
export const KILLS = {
  before: 'kill -9 $$',
  after: `${REAL_GIT} "$@"; kill -9 $$`,
} as const

/** The process under test dies, and its git command goes on when there is such a file, as a child of nobody. */
export const orphanUntil = (gate: string) => `kill -9 $PPID; while [ ! -e ${gate} ]; do sleep 0.05; done`

const whenWritten = (project: string, objects: number, then: string) => `
(while [ "$(find ${project}/.git/objects -type f | wc -l)" -lt ${objects} ]; do :; done; ${then}) <&- &`

/** As soon as git has written so many objects into the repository: both die, or it goes on as a child of nobody. */
export const IN_THE_MIDDLE = {
  'the daemon and its git': (project: string, objects: number) =>
    whenWritten(project, objects, 'kill -9 $PPID; kill -9 0'),
  'the daemon, and its git goes on': (project: string, objects: number) =>
    whenWritten(project, objects, 'kill -9 $PPID'),
} as const
