import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '../../base/clock.ts'
import { describeError } from '../../base/errors.ts'
import type { RunId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { GIVEN_UP, deleteRef } from '../../git/refs.ts'
import { repositoryAt } from '../../git/repository.ts'
import type { Repository } from '../../git/repository.ts'
import { sweep } from '../../git/sweep.ts'
import { removeFolder, removeGoing } from '../../git/remove.ts'
import { repositoriesSweptOn, sweepWorkspace, sweepableOn, sweptIn } from '../../workspace/settle.ts'
import { findWorkspace, refOfRun } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import { isLeftBegun } from './end-landing.ts'
import type { WorkspacePorts } from './ports.ts'

/** Its time is over: nobody can ask for it any more, and then what is left of it is removed. */
export async function sweepOne(ports: WorkspacePorts, runId: RunId): Promise<void> {
  const workspace = await ports.store.read(findWorkspace, runId)
  if (workspace === undefined || (await isLeftBegun(ports, workspace))) return
  if (await ports.store.apply(sweepWorkspace, runId)) {
    await ports.point?.('workspace/swept')
    return removeAll(ports, workspace)
  }
  if (workspace.state === 'ready') await removeFolder(ports.git, workspace.folder)
}

async function removeAll({ git, warn, clock }: WorkspacePorts, workspace: Workspace): Promise<void> {
  const { runId, repo, top, folder } = workspace
  try {
    const found = await repositoryAt(git, { commonDir: repo, top })
    if (found !== undefined && workspace.mode === 'transaction') await deleteRef(git, found, refOfRun(runId))
    if (found !== undefined && !isRecent(clock, workspace)) await deleteRef(git, found, `${GIVEN_UP}${runId}`)
    await removeFolder(git, folder)
  } catch (error) {
    warn(`remains of the workspace of ${runId} could not be removed: ${describeError(error)}`)
  }
}

/** A worker that is paused in its landing for longer than this is none. */
const isRecent = (clock: Clock, { settledAt }: Workspace) => clock.now() - (settledAt ?? 0) < LIMITS.remainsKeptMs

/** Strays in a repository, of ours alone: those of another home, of which this store knows nothing, are not touched. */
export async function sweepRepository(ports: WorkspacePorts, repo: Repository): Promise<void> {
  const { git, store, host, warn, clock } = ports
  const swept = await store.read(sweptIn, host, repo.commonDir, LIMITS.longestPage)
  if (swept.length === 0) return
  const over = new Set<string>(swept.map(({ runId }) => runId))
  const past = new Set<string>(swept.filter((each) => !isRecent(clock, each)).map(({ runId }) => runId))
  const isKnown = (runId: string) => !over.has(runId)
  await sweep(git, repo, isKnown, (runId) => !past.has(runId)).catch((error: unknown) =>
    warn(`what is left in ${repo.top} could not be swept: ${describeError(error)}`),
  )
}

/** At a start: one who died after it was written down that nothing must be left, and before nothing was. */
export async function sweepRepositories(ports: WorkspacePorts): Promise<void> {
  const { store, host, git } = ports
  for (const { repo, top } of await store.read(repositoriesSweptOn, host, LIMITS.page)) {
    const found = await repositoryAt(git, { commonDir: repo, top }).catch(() => undefined)
    if (found !== undefined) await sweepRepository(ports, found)
  }
}

/** What nobody can bring back any more. */
export async function sweepWorkspaces(ports: WorkspacePorts): Promise<void> {
  for (const { runId } of await ports.store.read(sweepableOn, ports.host, LIMITS.page)) await sweepOne(ports, runId)
}

/** Those of which nothing is needed: by then everything that counts is a commit, or was removed. */
const OVER: ReadonlySet<string> = new Set(['landed', 'ready', 'discarded', 'kept', 'would_land', 'would_discard'])

/** Folders that somebody had no time to remove. One that no row knows may be about to be opened, by another home's store. */
export async function sweepFolders(ports: WorkspacePorts): Promise<void> {
  const { folder, git, store, clock } = ports
  await removeGoing(git, folder)
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name)
    const workspace = await store.read(findWorkspace, name as RunId)
    if (workspace !== undefined && workspace.folder !== path) continue
    if (workspace === undefined && clock.now() - (await ageOf(path)) < LIMITS.remainsKeptMs) continue
    if (workspace === undefined || OVER.has(workspace.state)) await removeFolder(git, path)
  }
}

const ageOf = async (path: string) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0
