import { readdirSync, readFileSync } from 'node:fs'
import { childProcess } from './node-parts.ts'

export interface ProcessRow {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** The group that its terminal belongs to just now; where that is not known, nothing. */
  readonly foreground?: number
  /** Clock ticks since boot on Linux, milliseconds since 1970 on macOS: only comparable on one boot of one host. */
  readonly startTime: number
  /** A zombie: it runs nothing any more and only waits for its parent to ask. */
  readonly dead: boolean
}

export const MARK_VARIABLE = 'HOLDFAST_MARK'

const darwin = process.platform === 'darwin'

export function readProcessTable(): ProcessRow[] {
  return darwin ? darwinTable() : linuxPids().flatMap((pid) => readProcess(pid) ?? [])
}

/** Those that are not among the ones seen, which they are then; undefined when there are none. They may be gone already. */
export function readNewcomers(seen: Set<number>): ProcessRow[] | undefined {
  const pids = (darwin ? darwinTable().map(({ pid }) => pid) : linuxPids()).filter((pid) => !seen.has(pid))
  for (const pid of pids) seen.add(pid)
  return pids.length === 0 ? undefined : pids.flatMap((pid) => readProcess(pid) ?? [])
}

export function readProcess(pid: number): ProcessRow | undefined {
  if (darwin) return darwinTable(pid)[0]
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch (error) {
    return unlessGone(error)
  }
}

/** Only "not there" is an answer. Not to be able to look, for want of file handles for instance, is none. */
export function unlessGone(error: unknown): undefined {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT' || code === 'ESRCH' || code === 'ENODEV') return undefined
  throw error
}

/** Does the process carry this mark, be it as the innermost of several nested commands or as one around it? */
export const carriesMark = (pid: number, mark: string): boolean => hasMark(environmentOf(pid) ?? '', mark)

/** The same; `unclear` gets whoever is between two programs: whose it is cannot be said before that is over. */
export function findsMark(pid: number, mark: string, unclear: Set<number>): boolean {
  const environment = environmentOf(pid)
  if (environment === undefined) unclear.add(pid)
  return hasMark(environment ?? '', mark)
}

const hasMark = (environment: string, mark: string) =>
  environment
    .split(darwin ? ' ' : '\0')
    .some((entry) => entry.startsWith(`${MARK_VARIABLE}=`) && marksIn(entry).includes(mark))

// Of field 9 of proc_pid_stat(5): it is about to be a zombie; it is a thread of the kernel.
const [EXITING, KERNEL] = [0x4, 0x20_00_00]

/**
 * For a moment of `exec` a process has neither arguments nor an environment, and on a busy machine that moment lasts: undefined
 * then. Whoever has arguments is past it, so its environment is read once more.
 */
function environmentOf(pid: number): string | undefined {
  const environment = readEnvironment(pid)
  if (environment !== '' || darwin) return environment
  try {
    const isPast = readFileSync(`/proc/${pid}/cmdline`, 'latin1') !== ''
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const flags = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[6])
    return isPast || (flags & (EXITING | KERNEL)) !== 0 ? readEnvironment(pid) : undefined
  } catch {
    return ''
  }
}

const marksIn = (entry: string) => entry.slice(MARK_VARIABLE.length + 1).split('.')

/** A command inside a command carries both marks: the sweep of the outer one must find it too. */
export function nestMark(outer: string | undefined, mark: string): string {
  return outer === undefined || outer === '' ? mark : `${outer}.${mark}`
}

/** Fields 1 to 8, 20 and 22 of proc_pid_stat(5). The name in parentheses may itself hold parentheses and spaces. */
export function parseStat(text: string): ProcessRow | undefined {
  const close = text.lastIndexOf(')')
  const fields = text.slice(close + 2).split(' ')
  const field = (number: number) => Number(fields[number - 3])
  if (close < 0 || fields.length < 20) return undefined
  return {
    pid: Number.parseInt(text, 10),
    parent: field(4),
    group: field(5),
    session: field(6),
    foreground: field(8),
    startTime: field(22),
    // A leader thread that ended before its siblings looks like a zombie, but has threads.
    dead: /^[ZX]/.test(fields[0] ?? '') && field(20) <= 1,
  }
}

/** Lines of `ps -o pid=,ppid=,pgid=,sess=,stat=,lstart=`. macOS prints 0 for the session: the group stands in. */
export function parsePs(text: string): ProcessRow[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(.+?)\s*$/.exec(line)
    if (match === null) return []
    const [pid, parent, group] = [Number(match[1]), Number(match[2]), Number(match[3])]
    const startTime = Date.parse(match[6] ?? '')
    return [{ pid, parent, group, session: group, startTime, dead: match[5]?.startsWith('Z') === true }]
  })
}

function linuxPids(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
}

function readEnvironment(pid: number): string {
  try {
    return darwin ? ps(['eww', '-o', 'command=', '-p', String(pid)]) : readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // Another user's process cannot be one of ours; but one that could not be looked at for want of handles can.
    if (darwin || code === 'EMFILE' || code === 'ENFILE') throw error
    return ''
  }
}

function darwinTable(pid?: number): ProcessRow[] {
  const which = pid === undefined ? ['-A'] : ['-p', String(pid)]
  return parsePs(ps([...which, '-o', 'pid=,ppid=,pgid=,sess=,stat=,lstart=']))
}

function ps(args: readonly string[]): string {
  return answerOf(() =>
    childProcess().execFileSync('/bin/ps', args, {
      encoding: 'utf8',
      env: { LC_ALL: 'C' },
      maxBuffer: 64 * 1024 * 1024,
    }),
  )
}

/** A program that ended has answered, also with "there is none". One that could not be started, or was killed, has not. */
export function answerOf(ask: () => string): string {
  try {
    return ask()
  } catch (error) {
    const { status, stdout } = error as { readonly status?: number | null; readonly stdout?: string }
    if (typeof status !== 'number') throw error
    return stdout ?? ''
  }
}
