import { describeError } from '../../base/errors.ts'
import type { Git } from '../../git/git.ts'
import { begunIn, takeBack } from '../../git/land.ts'
import type { giveUp, TakenBack } from '../../git/land.ts'
import { putOnTop } from '../../git/on-top.ts'
import type { Repository } from '../../git/repository.ts'
import { findRun } from '../../runs/run.ts'
import { holdRemains } from '../../workspace/settle.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import { repositoryOf } from './ports.ts'
import type { WorkspacePorts } from './ports.ts'
import type { Settling } from './settle.ts'

/** The commit is the same whenever it is made; somebody may have swept it away meanwhile, as nothing named it. */
export async function isMade(git: Git, repo: Repository, workspace: Workspace): Promise<boolean> {
  const { work, base, checkedOn, sha, openedAt: at } = workspace
  const made = await putOnTop(git, repo, { work: work!, base, target: checkedOn!, at })
  return made.kind !== 'conflict' && made.commit === sha
}

/**
 * What a landing that was begun has in place goes back before anything else is done with its work, unless the branch has it. Only one of a run that succeeded
 * can have begun.
 */
export async function endLanding(
  { ports, git, repo, workspace }: Settling,
  end: typeof giveUp | typeof takeBack,
): Promise<TakenBack> {
  const { runId, branch: target, work, base, checkedOn: from, sha: to, conflicts } = workspace
  if (to === null || from === null || to === from || work === base || conflicts.length > 0) return NOTHING_BEGUN
  if ((await ports.store.read(findRun, runId))?.state !== 'succeeded') return NOTHING_BEGUN
  // Somebody may have swept it away meanwhile. If it cannot be made, that matters only where something is in place.
  await isMade(git, repo, workspace).catch(() => {})
  return end(git, repo, { target, from, to, runId })
}

const NOTHING_BEGUN: TakenBack = { kind: 'back', unseen: [] }

/**
 * What was begun in a working tree that was not there is ended when it is back: until then its stage is needed there, and nothing is swept. Tried by one process
 * at a time, and again after a while.
 */
export async function isLeftBegun(ports: WorkspacePorts, workspace: Workspace): Promise<boolean> {
  const { git, store, leaseMs, warn } = ports
  const { runId, state, repo, sweptAt } = workspace
  if ((state !== 'landed' && state !== 'kept') || sweptAt !== null) return false
  try {
    if ((await begunIn({ commonDir: repo }, runId)).length === 0) return false
    if (!(await store.apply(holdRemains, runId, leaseMs))) return true
    const found = await repositoryOf(git, workspace)
    await endLanding({ ports, git, repo: found, workspace }, takeBack)
  } catch (error) {
    warn(`the landing of ${runId} could not be ended: ${describeError(error)}`)
  }
  return true
}
