import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { callsOf, isLasting } from './calls.ts'
import type { Errno } from './calls.ts'

const SICK = fileURLToPath(new URL('sick.cjs', import.meta.url))

/** The nth call of its kind fails; a full disk, and one too few handles, stay so until the program ends. */
export interface Fault {
  /** Whose calls fail: those of SQLite, those of the program on its other files, or those of the supervisor of a command. */
  readonly layer: 'database' | 'program' | 'supervisor'
  readonly errno: Errno
  readonly call: string
  readonly nth: number
  /** Of SQLite: which of each kind of call, or from which on. */
  readonly since?: Readonly<Record<string, number>>
}

export interface Disguise {
  /** It does not get well by itself, and whoever waits for that waits in vain. */
  readonly isLasting?: boolean
  /** What stands before the program. */
  readonly before: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Where it happens. */
export interface Place {
  readonly folder: string
  readonly home: string
  /** What its databases are called is not known before; no thread but the first uses them. */
  readonly isAnywhere: boolean
}

const metIn = ({ folder }: Pick<Place, 'folder'>) => join(folder, 'met.txt')

/** The program as it is to be started, so that it meets this fault. The tracer is nobody's parent: signals reach the program. */
export function met({ layer, errno, nth, since = {} }: Fault, place: Place): Disguise {
  const stays = isLasting(errno)
  if (layer !== 'database') {
    const env = {
      SICK: `${errno}:${nth}:${stays ? 'on' : 'once'}`,
      SICK_BELOW: place.home,
      SICK_WHO: layer,
      SICK_TOLD: metIn(place),
      NODE_OPTIONS: `--require ${SICK}`,
    }
    return { before: [], env, isLasting: stays }
  }
  const injects = Object.entries(since).flatMap(([call, first]) => [
    '-e',
    `inject=${call}:error=${errno}:when=${first}${stays ? '+' : ''}`,
  ])
  const traced = ['-e', `trace=${Object.keys(since).join(',')}`]
  return { before: [...tracer(place, metIn(place)), ...traced, ...injects], env: {}, isLasting: stays }
}

/** When something failed as it was to, in milliseconds: an injection that nobody met is none. */
export function instantsMet(place: Pick<Place, 'folder'>): number[] {
  if (!existsSync(metIn(place))) return []
  const lines = readFileSync(metIn(place), 'utf8').split('\n')
  return lines.flatMap((line) =>
    line.includes('(INJECTED)') ? [1_000 * Number(/\d+\.\d+/.exec(line)?.[0] ?? Number.NaN)] : [],
  )
}

/** The same, where nothing fails and calls are counted: those of SQLite in one file, the others in the other. */
export function counted(place: Place, database: string, files: string): Disguise {
  // Locks fail nowhere here; they tell where one thing that SQLite does ends.
  const calls = [...callsOf(place.isAnywhere), 'fcntl'].join(',')
  return {
    before: [...tracer(place, database), '-e', `trace=${calls}`],
    env: { SICK_COUNT: files, SICK_BELOW: place.home, NODE_OPTIONS: `--require ${SICK}` },
  }
}

function tracer({ home, isAnywhere }: Place, output: string): string[] {
  const paths = ['', '-wal', '-shm', '-journal'].flatMap((part) => ['-P', `${home}/holdfast.db${part}`])
  // Only at these calls does the kernel stop the program; without it, at each call there is.
  const whose = isAnywhere ? [] : ['-f', '--seccomp-bpf', ...paths]
  // When (-ttt), and on which file (-y); no bytes (-s).
  return ['strace', '-D', '-qq', '-ttt', '-y', '-s', '0', '-o', output, '-e', 'signal=none', ...whose]
}
