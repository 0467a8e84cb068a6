import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { ensureFolder, writeFileAtomic } from '../base/files.ts'
import type { ToolContext } from '../loop/ports.ts'
import { judgeProcess, processIdentity } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'

/*
 * A function lives in a process that may be paused, or have lost its claim, and go on later. As long as it may, "not
 * done" is not an answer but a moment: performed again, it would happen twice. So whoever begins leaves its identity
 * where a taker finds it, and only the proven end of that process, or of the function in this one, makes the answer count.
 */

const fileIn = (folder: string) => join(folder, 'function.json')

export interface UnderWay {
  readonly key: string
  /** Its place among those of this process that are under way; undefined: it is not. */
  at: number | undefined
}

/** The functions of this process that have not ended, those that were left behind too; in no order, so that one of thousands ends without being looked for. */
const underWay: UnderWay[] = []

export async function leaveIdentity({ folder }: ToolContext): Promise<void> {
  await ensureFolder(folder)
  // Gone after a power loss, it proves nothing, and then the doubt stays.
  await writeFileAtomic(fileIn(folder), JSON.stringify(processIdentity() ?? null), { mode: 0o600, durable: false })
}

export function begins(begun: UnderWay): void {
  begun.at = underWay.push(begun) - 1
}

/** Under way no longer; false: it was not. */
export function ends(begun: UnderWay): boolean {
  const { at } = begun
  if (at === undefined) return false
  begun.at = undefined
  const last = underWay.pop()!
  if (last !== begun) underWay[(last.at = at)] = last
  return true
}

/** That one is looked for is rare. */
export const underWayHere = (): readonly UnderWay[] => underWay

const hasBegun = (key: string): boolean => underWay.some((begun) => begun.key === key)

/** Whether a function of this process has begun with it, and has not ended. */
export const isUnderWay = (key: string): boolean => hasBegun(key)

/** Whether one of this process has begun with anything, and has not ended. */
export const isAnyUnderWay = (): boolean => underWay.length > 0

/** Whether nothing of this try can happen any more. */
export function isOver({ key, folder }: ToolContext): boolean {
  if (hasBegun(key)) return false
  const owner = readIdentity(folder)
  if (owner === undefined) return false
  return (
    judgeProcess(owner) === 'dead' || (owner.startTime === processIdentity()?.startTime && owner.pid === process.pid)
  )
}

function readIdentity(folder: string): ProcessIdentity | undefined {
  try {
    return (JSON.parse(readFileSync(fileIn(folder), 'utf8')) as ProcessIdentity | null) ?? undefined
  } catch {
    return undefined
  }
}
