import { writeFileAtomic } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import { lookForBootsIn, readBoots } from './boots.ts'
import { isKnownByName, thisPlace } from './identity.ts'
import type { Place } from './identity.ts'

/** By whoever is about to have something under way: a later boot has to know that it is dead. */
export async function rememberBoot(file: string, place: Place = thisPlace()): Promise<void> {
  if (!isKnownByName(place)) return
  lookForBootsIn(file)
  const seen = readBoots(file)
  if (seen.at(-1) === place.boot) return
  const boots = [...seen.filter((boot) => boot !== place.boot), place.boot].slice(-LIMITS.bootsRemembered)
  await writeFileAtomic(file, `${boots.join('\n')}\n`)
}
