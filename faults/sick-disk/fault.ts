import { fileURLToPath } from 'node:url'

const SICK = fileURLToPath(new URL('sick.cjs', import.meta.url))

const ERRNOS = ['EIO', 'ENOSPC', 'EMFILE'] as const
type Errno = (typeof ERRNOS)[number]

/** Whose calls fail: those of SQLite, those of the program on its other files, or those of the supervisor of a command. */
type Layer = 'database' | 'program' | 'supervisor'

/** The nth call fails; a full disk, and one too few handles, stay so until the program ends. */
export interface Fault {
  readonly layer: Layer
  readonly errno: Errno
  readonly nth: number
}

/** What SQLite asks of the system that each of them can meet. */
const CALLS: Readonly<Record<Errno, readonly string[]>> = {
  EIO: ['openat', 'read', 'pread64', 'write', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'unlink'],
  ENOSPC: ['write', 'pwrite64', 'ftruncate', 'fallocate'],
  EMFILE: ['openat'],
}

const isLasting = (errno: Errno) => errno !== 'EIO'

export interface Disguise {
  /** It does not get well by itself, and whoever waits for that waits in vain. */
  readonly isLasting?: boolean
  /** What stands before the program. */
  readonly before: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** The program as it is to be started, so that it meets this fault. The tracer is nobody's parent: signals reach the program. */
export function met({ layer, errno, nth }: Fault, home: string): Disguise {
  if (layer !== 'database') {
    const mode = isLasting(errno) ? 'on' : 'once'
    const env = {
      SICK: `${errno}:${nth}:${mode}`,
      SICK_BELOW: home,
      SICK_WHO: layer,
      NODE_OPTIONS: `--require ${SICK}`,
    }
    return { before: [], env, isLasting: isLasting(errno) }
  }
  const calls = CALLS[errno].join(',')
  const inject = `inject=${calls}:error=${errno}:when=${nth}${isLasting(errno) ? '+' : ''}`
  return {
    before: [...tracer(home, '/dev/null'), '-e', `trace=${calls}`, '-e', inject],
    env: {},
    isLasting: isLasting(errno),
  }
}

/** The same, where nothing fails and calls are counted: those of SQLite in one file, the others in the other. */
export function counted(home: string, database: string, files: string): Disguise {
  const calls = [...new Set(Object.values(CALLS).flat())].join(',')
  return {
    before: [...tracer(home, database), '-e', `trace=${calls}`],
    env: { SICK_COUNT: files, SICK_BELOW: home, NODE_OPTIONS: `--require ${SICK}` },
  }
}

function tracer(home: string, output: string): string[] {
  const paths = ['', '-wal', '-shm', '-journal'].flatMap((part) => ['-P', `${home}/holdfast.db${part}`])
  // Only at these calls does the kernel stop the program; without it, at each call there is.
  return ['strace', '--seccomp-bpf', '-D', '-f', '-qq', '-o', output, ...paths, '-e', 'signal=none']
}

/** How many cases there are: each call that can fail, in each way. */
export function faultsOf(trace: string, counts: string): Fault[] {
  const calls = trace.split('\n').map((line) => /^\d+ +(\w+)\(/.exec(line)?.[1] ?? '')
  const many = (length: number, layer: Layer, errno: Errno): Fault[] =>
    Array.from({ length }, (_, index) => ({ layer, errno, nth: index + 1 }))
  const ofDatabase = ERRNOS.flatMap((errno) =>
    many(calls.filter((call) => CALLS[errno].includes(call)).length, 'database', errno),
  )
  const ofFiles = counts.split('\n').flatMap((line) => {
    if (line === '') return []
    const { who, counts: each } = JSON.parse(line) as { readonly who: Layer; readonly counts: Record<Errno, number> }
    return ERRNOS.flatMap((errno) => many(each[errno], who, errno))
  })
  return [...ofDatabase, ...ofFiles]
}
