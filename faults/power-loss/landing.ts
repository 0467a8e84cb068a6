import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { REPOSITORY } from './lives.ts'
import { record } from './record.ts'
import type { Happened } from './trace.ts'

interface Named {
  readonly names: number
  readonly unsynced: readonly string[]
}

/** What is named while it lands, and not afterwards. */
const SCAFFOLD = '/.git/holdfast/'

/**
 * What a landing of a git transaction has named in its repository and not synced when it is told. Git syncs the bytes of what it
 * names, and no folder; file systems keep the order of names, so the sync of any later one is enough, in the same file system:
 * what the home folder syncs does not count, it may be on another.
 */
export async function unsyncedWhenTold(life: 'landing' | 'landingAside'): Promise<Named> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-landing-'))
  try {
    const root = join(folder, 'disk')
    const repository = join(root, REPOSITORY)
    const happened = await record(life, 1, root)
    const told = happened.findIndex((each) => each.kind === 'said' && each.text.includes('"landed"'))
    const before = happened.slice(0, told).filter((each) => 'path' in each && each.path.startsWith(repository))
    const lastSync = before.findLastIndex((each) => each.kind === 'synced')
    const isNamed = (each: Happened) =>
      (each.kind === 'renamed' || each.kind === 'linked') && !each.path.startsWith(repository + SCAFFOLD)
    const unsynced = before.slice(lastSync + 1).filter(isNamed)
    return {
      names: before.filter(isNamed).length,
      unsynced: unsynced.flatMap((each) => ('path' in each ? each.path.slice(repository.length) : [])),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
