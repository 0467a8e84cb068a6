import { HoldfastError } from '../../base/errors.ts'
import { isOfThisBoot, noteBoot } from '../../git/tree.ts'
import type { TreePlace } from '../../git/tree.ts'
import { attemptsOf } from '../../runs/attempt.ts'
import type { AttemptRef } from '../../runs/attempt.ts'
import type { WorkspacePorts } from './ports.ts'

/**
 * Whether what was written in a tree can be relied upon. Nobody syncs it: after a power loss any of it may be missing or empty, of what was
 * checked out, too, and would land so. A machine that went down in order has written everything; then its worker had the time to let go.
 */
export async function isSound(
  { store }: WorkspacePorts,
  { runId, fence }: AttemptRef,
  tree: TreePlace,
): Promise<boolean> {
  if (await isOfThisBoot(tree)) return true
  const attempts = await store.read(attemptsOf, runId)
  const before = attempts.filter((attempt) => attempt.fence < fence).toSorted((a, b) => a.fence - b.fence)
  if ((before.at(-1)?.releasedAt ?? null) === null) return false
  await noteBoot(tree)
  return true
}

export const cutShort = ({ tree }: TreePlace) =>
  new HoldfastError(
    'workspace/tree-gone',
    `the machine went down, and what was written in ${tree} may not all be there`,
    {
      remedy: 'start the work again',
    },
  )
