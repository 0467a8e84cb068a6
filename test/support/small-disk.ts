import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { temporaryFolder } from './engines.ts'

export interface SmallDisk {
  readonly folder: string
  /** Leaves not a byte free. */
  fill(): void
  free(): void
}

/** A real file system of a given size, or undefined where none can be mounted. */
export function smallDisk(size: string): SmallDisk | undefined {
  const folder = temporaryFolder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  onTestFinished(() => void execFileSync('umount', ['-l', folder]))
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      for (let bytes = 1 << 22; bytes >= 1; bytes >>= 1) append(ballast, bytes)
    },
    free: () => rmSync(ballast, { force: true }),
  }
}

function append(file: string, bytes: number): void {
  try {
    for (;;) writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' })
  } catch {
    // Full for pieces of this size: the next smaller ones fill the rest.
  }
}
