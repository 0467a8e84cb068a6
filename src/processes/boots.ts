import { readFileSync } from 'node:fs'

import { writeFileAtomic } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import { isKnownByName, knowBoots, thisPlace } from './identity.ts'
import type { Place } from './identity.ts'

/**
 * A machine without an id is not told from another of the same name. Its home folder is its own: the boots from which that was opened are
 * written there, so that what was under way before a restart is known to be dead, and what another machine has is not.
 */
export async function rememberBoot(file: string, place: Place = thisPlace()): Promise<void> {
  if (!isKnownByName(place)) return
  const seen = readBoots(file)
  knowBoots(seen)
  if (seen.at(-1) === place.boot) return
  const boots = [...seen.filter((boot) => boot !== place.boot), place.boot].slice(-LIMITS.bootsRemembered)
  await writeFileAtomic(file, `${boots.join('\n')}\n`)
}

function readBoots(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
