import { readFileSync, readdirSync, readlinkSync } from 'node:fs'

/**
 * Living processes with this text among their arguments, or with this file open; found without any of our own code. Whoever was born
 * during the look is looked at, too, until there is nobody new.
 */
export function survivorsOf(token: string, held: string): string[] {
  const [seen, found] = [new Set([String(process.pid)]), [] as string[]]
  for (let round = 0; round < 50; round++) {
    const born = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && !seen.has(name))
    if (born.length === 0) break
    for (const pid of born) {
      seen.add(pid)
      const command = slurp(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
      if ((command.includes(token) || holds(pid, held)) && isAlive(pid)) found.push(`${pid} ${command.slice(0, 120)}`)
    }
  }
  return found
}

const isAlive = (pid: string) => !/^State:\s+[ZX]/m.test(slurp(`/proc/${pid}/status`) || 'State:\tX')

function holds(pid: string, held: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/9`) === held
  } catch {
    return false
  }
}

function slurp(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** The most memory that a process has ever had, in MiB. */
export const peakOf = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+)/m.exec(slurp(`/proc/${pid}/status`))?.[1] ?? 0) / 1024

/** How long a process was ready to go on and got no processor, in milliseconds, as the kernel counted it. */
export const waitedOf = (pid: number): number => Number(slurp(`/proc/${pid}/schedstat`).split(' ')[1] ?? 0) / 1e6

/**
 * What the one of these processes that waited longest for a processor which others had has waited since it was asked for. They
 * wait at the same time: what each of them waited is not to be added up. One that has ended waits no more.
 */
export class Starvation {
  readonly #since = new Map<number, number>()
  readonly #latest = new Map<number, number>()

  readonly #waited: (pid: number) => number

  constructor(pids: readonly number[], waited = waitedOf) {
    this.#waited = waited
    for (const pid of pids) this.watch(pid)
  }

  /** One that comes later has waited for nothing before. */
  watch(pid: number, since = this.#waited(pid)): void {
    if (pid > 0 && !this.#since.has(pid)) this.#since.set(pid, since)
  }

  get ms(): number {
    let longest = 0
    for (const [pid, since] of this.#since) {
      this.#latest.set(pid, Math.max(this.#latest.get(pid) ?? since, this.#waited(pid)))
      longest = Math.max(longest, this.#latest.get(pid)! - since)
    }
    return longest
  }
}

/** The supervisors of the commands below this folder. */
export function supervisorsIn(folder: string): { readonly pid: number; readonly command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), command: slurp(`/proc/${name}/cmdline`).replaceAll('\0', ' ') }))
    .filter(({ command }) => command.includes('supervisor-main') && command.includes(folder))
}
