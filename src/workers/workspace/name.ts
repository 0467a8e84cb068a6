import { setOwnRef } from '../../git/refs.ts'
import type { Repository } from '../../git/repository.ts'
import { syncObjects } from '../../git/sync-objects.ts'
import type { AttemptRef } from '../../runs/attempt.ts'
import { findRun } from '../../runs/run.ts'
import { findWorkspace, refOfRun } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import type { WorkspacePorts } from './ports.ts'

/**
 * Makes our ref name this commit, so that nobody sweeps it away. One who was paused, and whose run another has ended meanwhile, would
 * bring a ref back that is over: so it is asked first whose it is.
 */
export async function nameWork(
  { git }: WorkspacePorts,
  repo: Repository,
  { runId, base }: Workspace,
  commit: string,
  isMine: () => Promise<boolean>,
): Promise<void> {
  if (!(await isMine())) throw new Error(`${runId} is another worker's by now`)
  await syncObjects(git, repo, { from: base, to: commit })
  await setOwnRef(git, repo, refOfRun(runId), commit)
}

/** Whether the claim still holds. */
export async function holdsRun({ store }: WorkspacePorts, { runId, fence }: AttemptRef): Promise<boolean> {
  const run = await store.read(findRun, runId)
  return run?.state === 'running' && run.fence === fence
}

/** Whether what is left to do is still this process's to do. */
export async function settles({ store, workerId }: WorkspacePorts, { runId }: Workspace): Promise<boolean> {
  return (await store.read(findWorkspace, runId))?.settler === workerId
}
