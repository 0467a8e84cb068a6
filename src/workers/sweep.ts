import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { removeRemains } from '../processes/attempt-folder.ts'
import { markInUse } from '../runs/attempt.ts'
import type { Store } from '../store/store.ts'
import { homePaths } from './home.ts'

/**
 * Removes what commands left behind long ago: output too large for its row, and the fences that kept paused workers from
 * starting. By age alone, and never what an attempt under way still needs.
 */
export async function sweepRemains(home: string, store: Store, clock: Clock): Promise<number> {
  const { work } = homePaths(home)
  let removed = 0
  for (const mark of await readdir(work).catch(() => [])) {
    const folder = join(work, mark)
    const { mtimeMs } = await stat(folder)
    if (clock.now() - mtimeMs < LIMITS.remainsKeptMs || (await store.read(markInUse, mark)) !== undefined) continue
    await removeRemains(folder)
    removed += 1
  }
  return removed
}
