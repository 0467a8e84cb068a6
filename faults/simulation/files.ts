import fs from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

type Call = (...args: unknown[]) => unknown

const NAMES = ['mkdir', 'readdir', 'stat', 'lstat', 'rm', 'readFile', 'writeFile', 'rename', 'unlink', 'link'] as const

/** What the one writer of files asks of a handle. */
async function open(path: string, flags = 'r', mode?: number) {
  const file = fs.openSync(path, flags, mode)
  return {
    fd: file,
    writeFile: async (data: string | Uint8Array) => fs.writeFileSync(file, data),
    sync: async () => {},
    datasync: async () => {},
    chmod: async (bits: number) => fs.fchmodSync(file, bits),
    close: async () => fs.closeSync(file),
  }
}

/**
 * From now on files answer at once, in this whole process: the real ones answer from other threads, in an order that no seed
 * determines.
 */
export function answerAtOnce(): void {
  const table = promises as unknown as Record<string, Call>
  for (const name of NAMES) {
    const atOnce = fs[`${name}Sync`] as Call
    table[name] = async (...args) => atOnce(...args)
  }
  Object.assign(promises, { open })
  syncBuiltinESMExports()
}
