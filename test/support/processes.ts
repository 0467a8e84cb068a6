import { readFileSync, readdirSync } from 'node:fs'

interface Process {
  readonly pid: number
  readonly command: string
}

/** Living processes that carry this text in their environment: what a run left behind, however it forked. */
export function processesWith(text: string): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name), text))
    .filter((found) => found !== undefined)
}

function readProcess(pid: number, text: string): Process | undefined {
  try {
    if (!readFileSync(`/proc/${pid}/environ`, 'utf8').includes(text)) return undefined
    if (/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) return undefined
    return { pid, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }
  } catch {
    return undefined
  }
}

/** The supervisors of commands under this home folder. */
export function supervisorsOf(home: string): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), command: commandLine(name) }))
    .filter(({ command }) => command.includes('supervisor-main') && command.includes(home))
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
