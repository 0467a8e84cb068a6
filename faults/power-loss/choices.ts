import type { Dice } from '../simulation/seeded.ts'
import type { Choice, Disk } from './disk.ts'

export const ALL_LOST = 'all that was not synced lost'

const SECTOR_BYTES = 512
/** Of a commit with hundreds of writes each prefix loses so many of them, not each: the square of that is too many. */
const MOST_SINGLES = 6
const MOST_TEARS = 8

/**
 * What a power loss at this instant may leave: nothing that is uncertain, all of it, the bytes without the names, the names without
 * the bytes, all but one of them (for some of many), the last write torn at a sector, and some at random.
 */
export function choicesAt(disk: Disk, dice: Dice, randoms: number): Choice[] {
  const { changes, renamings } = disk.uncertain()
  const named = new Set(renamings.map(({ id }) => id))
  const choices: Choice[] = [{ fault: 'all that was not synced kept', keeps: () => true }]
  if (changes.length + renamings.length === 0) return choices
  choices.push({ fault: ALL_LOST, keeps: () => false })
  if (renamings.length > 0 && changes.length > 0) {
    choices.push({ fault: 'names kept, bytes lost', keeps: (id) => named.has(id) })
    choices.push({ fault: 'bytes kept, names lost', keeps: (id) => !named.has(id) })
  }
  for (const { id: lost } of someOf(changes, dice))
    choices.push({ fault: 'one write lost', keeps: (id) => id !== lost })
  for (const { id: lost } of someOf(renamings, dice))
    choices.push({ fault: 'one name lost', keeps: (id) => id !== lost })
  choices.push(...tears(disk))
  for (let time = 0; time < randoms && changes.length + renamings.length > 2; time += 1)
    choices.push(anySubset(disk, dice))
  return choices
}

function someOf<T>(all: readonly T[], dice: Dice): readonly T[] {
  if (all.length <= MOST_SINGLES) return all
  const rest = [...all]
  return Array.from({ length: MOST_SINGLES }, () => rest.splice(dice.below(rest.length), 1)[0]!)
}

function tears(disk: Disk): Choice[] {
  const last = disk.lastWrite()
  if (last === undefined) return []
  const { id: change, at, length } = last
  const keeps = (id: number) => id !== change
  const first = SECTOR_BYTES - (at % SECTOR_BYTES)
  const step = Math.max(SECTOR_BYTES, Math.ceil(length / MOST_TEARS / SECTOR_BYTES) * SECTOR_BYTES)
  const choices: Choice[] = [{ fault: 'length kept, bytes lost', keeps, torn: { change, bytes: 0, zeros: true } }]
  for (let bytes = first; bytes < length; bytes += step)
    choices.push({ fault: 'last write torn', keeps, torn: { change, bytes } })
  return choices
}

/** Of the names a beginning: file systems with a journal keep their order. */
function anySubset(disk: Disk, dice: Dice): Choice {
  const { changes, renamings } = disk.uncertain()
  const share = dice.fraction()
  const kept = new Set(changes.filter(() => dice.chance(share)).map(({ id }) => id))
  for (const { id } of renamings.slice(0, dice.below(renamings.length + 1))) kept.add(id)
  return { fault: 'any of it lost', keeps: (id) => kept.has(id) }
}
