import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Room } from './room.ts'

/** Room for a home and what a run of it adds. */
const SIZE = '24m'

const mount = (...args: readonly string[]) => execFileSync('mount', args, { stdio: 'ignore' })

/** Whether a file system of our own can be mounted here. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mount-'))
  try {
    mount('-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
    execFileSync('umount', ['-l', folder])
    return true
  } catch {
    return false
  } finally {
    rmdirSync(folder)
  }
}

export interface SickMount {
  readonly heal: () => void
  readonly unmount: () => void
}

/** The home folder on a small file system of its own, without a byte free or read-only. */
export function mountHome({ home }: Room, how: 'full' | 'read-only'): SickMount {
  const kept = `${home}.kept`
  mkdirSync(home, { recursive: true })
  cpSync(home, kept, { recursive: true })
  mount('-t', 'tmpfs', '-o', `size=${SIZE},mode=700`, 'tmpfs', home)
  cpSync(kept, home, { recursive: true })
  const ballast = join(home, 'ballast')
  if (how === 'full') fill(ballast)
  else mount('-o', 'remount,ro', home)
  return {
    heal: () => (how === 'full' ? rmSync(ballast, { force: true }) : void mount('-o', 'remount,rw', home)),
    unmount() {
      execFileSync('umount', ['-l', home])
      for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true })
    },
  }
}

function fill(file: string): void {
  for (let bytes = 1 << 20; bytes >= 1; bytes >>= 2) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' })
    } catch {
      // Full for pieces of this size: smaller ones fill the rest.
    }
  }
}
