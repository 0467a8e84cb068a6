import { readFileSync, writeFileSync } from 'node:fs'

/*
 * A core file or a report of a process that knows secrets would have them in it. Which memory a core file gets is the kernel's filter of
 * the process: none, here. Whoever is started inherits it, so the commands of runs are started with the one that was there before.
 */
const FILTER = '/proc/self/coredump_filter'

/** No memory at all. */
const NOTHING = '0x0'

let before: string | undefined

/** What the commands get: as it was when the first process of ours began. */
export const dumpsBefore = (): string | undefined => before

/** From now on this process leaves nothing of its memory, and no report with its environment. */
export function leaveNoDumps(former?: string): void {
  const { report } = process
  report.reportOnFatalError = false
  report.reportOnSignal = false
  report.reportOnUncaughtException = false
  report.excludeEnv = true
  before ??= former ?? read()
  write(NOTHING)
}

/** What is born here has the filter that everybody else's processes have. */
export function withDumps<T>(begin: () => T): T {
  if (before === undefined) return begin()
  write(before)
  try {
    return begin()
  } finally {
    write(NOTHING)
  }
}

/** How it stands with this process, in words. */
export function describeDumps(): { readonly off: boolean; readonly detail: string } {
  const filter = read()
  if (filter === undefined) return { off: false, detail: 'this system has no filter for core files' }
  return Number(filter) === 0
    ? { off: true, detail: 'core files of ours have no memory in them, reports no environment' }
    : { off: false, detail: `the filter of core files is ${filter}` }
}

function read(): string | undefined {
  try {
    return `0x${readFileSync(FILTER, 'utf8').trim()}`
  } catch {
    return undefined
  }
}

function write(filter: string): void {
  try {
    writeFileSync(FILTER, filter)
  } catch {
    // Not Linux, or a kernel without it; the doctor says so.
  }
}
