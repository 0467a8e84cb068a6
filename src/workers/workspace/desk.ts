import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import type { RunId } from '../../base/ids.ts'
import { diff } from '../../git/diff.ts'
import type { Git } from '../../git/git.ts'
import { initRepository } from '../../git/init.ts'
import { openRepository } from '../../git/repository.ts'
import type { OpenedRepository } from '../../git/repository.ts'
import { thisPlace } from '../../processes/identity.ts'
import { findWorkspace } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import type { Store } from '../../store/store.ts'
import { homePaths } from '../home.ts'
import type { Worker } from '../worker.ts'
import { repositoryOf } from './ports.ts'

/** What a person's door needs of the files of runs: a look, a diff, and what was asked for done at once. */
export interface WorkspaceDesk {
  /** The repository that a folder is in; with `init` it is made one. */
  look(folder: string, options: { readonly init: boolean }): Promise<OpenedRepository>
  /** What the work changes. */
  diff(workspace: Workspace, maxBytes: number): Promise<WorkspaceDiff>
  /** Does what was asked for, if that can be done here; otherwise a daemon of its machine does. */
  settle(runId: RunId): Promise<void>
}

export interface WorkspaceDiff {
  readonly from: string
  readonly to: string
  readonly text: string
  readonly cut: boolean
}

export interface DeskOptions {
  readonly store: Store
  readonly clock: Clock
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  readonly registerWorker: () => Promise<Worker>
}

export function openWorkspaceDesk({ store, clock, home, env, registerWorker }: DeskOptions): WorkspaceDesk {
  const git: Git = { clock, env, rooms: homePaths(home).gitRooms }
  return {
    look: (folder, { init }) => lookAt(git, folder, init),
    diff: (workspace, maxBytes) => diffOf(git, workspace, maxBytes),
    async settle(runId) {
      const found = await store.read(findWorkspace, runId)
      if (found === undefined || found.host !== thisPlace().host) return
      const worker = await registerWorker()
      try {
        await worker.settleWorkspace(runId)
      } finally {
        await worker.stop()
      }
    },
  }
}

async function lookAt(git: Git, folder: string, init: boolean): Promise<OpenedRepository> {
  try {
    return await openRepository(git, folder)
  } catch (error) {
    const code = error instanceof HoldfastError ? error.code : ''
    if (!init || (code !== 'git/no-repository' && code !== 'git/no-commit')) throw error
    return initRepository(git, folder, git.clock.now())
  }
}

/** What lands, where that is known; otherwise what the run did to its base. */
async function diffOf(git: Git, workspace: Workspace, maxBytes: number): Promise<WorkspaceDiff> {
  const { runId, state, host, sweptAt, work, sha, checkedOn, base, conflicts } = workspace
  if (host !== thisPlace().host)
    throw new HoldfastError('workspace/elsewhere', `its repository is on ${host}`, { remedy: 'ask there' })
  // What landed or is kept is on a branch of the person's.
  if (sweptAt !== null && state !== 'landed' && state !== 'kept')
    throw new HoldfastError('workspace/swept', `nothing of the work of ${runId} is left but the record`, {
      remedy: '`holdfast workspace show` has what changed',
    })
  if (work === null)
    throw new HoldfastError('workspace/no-work', `there is no work of ${runId} to look at`, {
      remedy: 'its run has not come so far, or ended before it had begun',
    })
  const landing = sha !== null && checkedOn !== null && conflicts.length === 0
  const [from, to] = landing ? [checkedOn, sha] : [base, work]
  const repo = await repositoryOf(git, workspace)
  return { from, to, ...(await diff(git, repo, { from, to }, maxBytes)) }
}
