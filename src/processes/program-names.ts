import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** What a process is called by: its own name, and its script if it is one of Node or the like. None where that cannot be seen. */
export function programNames(pid: number): string[] {
  try {
    const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const script = words.slice(1).find((word) => !word.startsWith('-')) ?? ''
    return [name, basename(script)]
  } catch {
    return []
  }
}
