import type { Fault } from './fault.ts'

/*
 * What strace wrote down of a program on a healthy disk, as the calls of SQLite that can fail. strace counts each kind of call
 * by itself: the third write is `when=3` of `pwrite64`, however many reads come before it.
 */

const ERRNOS = ['EIO', 'ENOSPC', 'EMFILE'] as const
export type Errno = (typeof ERRNOS)[number]

/** What SQLite asks of the system that each of them can meet. */
const CALLS: Readonly<Record<Errno, readonly string[]>> = {
  EIO: ['openat', 'read', 'pread64', 'write', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'unlink'],
  ENOSPC: ['write', 'pwrite64', 'ftruncate', 'fallocate'],
  EMFILE: ['openat'],
}
/** By these Node speaks and finds its own code, too: only where the files are known by their names. */
const OF_NODE = ['openat', 'read', 'write']

/** The names of the calls that are looked at; where it is not known before which files they are for, without some. */
export function callsOf(isAnywhere: boolean): string[] {
  const all = new Set(Object.values(CALLS).flat())
  return [...all].filter((name) => !(isAnywhere && OF_NODE.includes(name)))
}

interface Call {
  readonly name: string
  readonly file: string
  readonly bytes: string
  /** Of the calls of this name. */
  readonly nth: number
}

const DATABASE = /\/[^/]*\.db[^/]*$/
/** A loop of SQLite is made of these; anything else, such as a lock, is between two of them. */
const LOOPED = ['pread64', 'pwrite64']

export const isLasting = (errno: Errno): boolean => errno !== 'EIO'

/** Each call of SQLite that can fail, in each way. */
export function databaseFaults(trace: string): Fault[] {
  const calls = readCalls(trace)
  const chosen = withoutTheSame(calls)
  return ERRNOS.flatMap((errno) =>
    chosen
      .filter(({ name }) => CALLS[errno].includes(name))
      .map((call) => ({ layer: 'database', errno, call: call.name, nth: call.nth, since: since(errno, call, calls) })),
  )
}

/** From which of each kind on: of a disk that stays sick all that comes after fails too. */
function since(errno: Errno, call: Call, calls: readonly Call[]): Record<string, number> {
  if (!isLasting(errno)) return { [call.name]: call.nth }
  const before = calls.slice(0, calls.indexOf(call))
  const next = (name: string) => 1 + before.filter((each) => each.name === name).length
  const names = new Set(calls.map(({ name }) => name).filter((name) => CALLS[errno].includes(name)))
  return Object.fromEntries([...names].map((name) => [name, next(name)]))
}

function readCalls(trace: string): Call[] {
  const counts = new Map<string, number>()
  const threads = new Set<string>()
  const calls = trace.split('\n').flatMap((line) => {
    const [, thread = '', name = '', args = ''] = /^(?:(\d+) +)?\d+\.\d+ (\w+)\((.*)/.exec(line) ?? []
    if (name === '') return []
    threads.add(thread)
    const nth = (counts.get(name) ?? 0) + 1
    counts.set(name, nth)
    const file = /^\d+<([^>]*)>/.exec(args)?.[1] ?? /"([^"]*)"/.exec(args)?.[1] ?? ''
    return [{ name, file, bytes: /, (\d+), \d+\) +=/.exec(args)?.[1] ?? '', nth }]
  })
  // strace counts for each thread by itself: the third write would be the third of each.
  if (threads.size > 1) throw new Error(`a database is used by ${threads.size} threads: whose call is to fail?`)
  return calls
}

/**
 * The pages of a commit, or of a log that is written back, go through one loop of SQLite without anything of ours in between. Of
 * those the first and the last fail, of each size and file; what is read fails each time, since each is read by other code.
 */
function withoutTheSame(calls: readonly Call[]): Call[] {
  const chosen = new Set(calls.filter(({ file }) => DATABASE.test(file)))
  for (const row of rowsOf(calls)) {
    const kinds = Object.groupBy(
      row.filter((_, place) => isOfLoop(row, place)),
      ({ name, file, bytes }) => `${name} ${file} ${bytes}`,
    )
    for (const kind of Object.values(kinds)) for (const each of kind?.slice(1, -1) ?? []) chosen.delete(each)
  }
  return [...chosen].filter(({ name }) => name !== 'fcntl')
}

function rowsOf(calls: readonly Call[]): Call[][] {
  const rows: Call[][] = [[]]
  for (const call of calls)
    if (LOOPED.includes(call.name)) rows.at(-1)!.push(call)
    else rows.push([])
  return rows
}

/** Written, or read between two writes. */
function isOfLoop(row: readonly Call[], place: number): boolean {
  const isWrite = (at: number) => row[at]?.name === 'pwrite64'
  return isWrite(place) || (isWrite(place - 1) && isWrite(place + 1))
}

/** The calls of our own code that can fail: what `sick.cjs` counted in each process. */
export function fileFaults(counts: string): Fault[] {
  const told = counts
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { readonly who: Fault['layer']; readonly counts: Record<Errno, number> })
  if (new Set(told.map(({ who }) => who)).size < told.length) throw new Error(`two processes count as one: ${counts}`)
  return told.flatMap(({ who, counts: each }) =>
    ERRNOS.flatMap((errno) =>
      Array.from({ length: each[errno] }, (_, index) => ({ layer: who, errno, call: 'file', nth: index + 1 })),
    ),
  )
}
