import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { sleep } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import type { Randomness, RunId, WorkerId } from '../../base/ids.ts'
import { removeFolder } from '../../git/remove.ts'
import { repositoryAt } from '../../git/repository.ts'
import type { Repository } from '../../git/repository.ts'
import type { Git, GitPoint } from '../../git/git.ts'
import { placeIn } from '../../git/tree.ts'
import type { StopReason } from '../../processes/command.ts'
import type { Supervised } from '../../processes/supervised.ts'
import type { Store } from '../../store/store.ts'
import type { Workspace } from '../../workspace/workspace.ts'

/** What is recorded by then; a process can die, or be paused, at any of them. */
export const WORKSPACE_POINTS = [
  'workspace/opened',
  'workspace/active',
  'workspace/worked',
  'workspace/prepared',
  'workspace/locked',
  'workspace/checking',
  'workspace/check-started',
  'workspace/check-ended',
  'workspace/checked',
  'workspace/ended',
  'workspace/landed',
  'workspace/snapshot-kept',
  'workspace/settled',
  'workspace/swept',
  'workspace/observed',
] as const
export type WorkspacePoint = (typeof WORKSPACE_POINTS)[number] | GitPoint

/** Where the store, git and processes meet for the files of runs. */
export interface WorkspacePorts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly workerId: WorkerId
  readonly leaseMs: number
  readonly graceMs: number
  readonly host: string
  /** The folder of all workspaces that are opened here. */
  readonly folder: string
  readonly codeCache: string
  readonly git: Git
  readonly warn: (message: string) => void
  /** What this process is settling right now. */
  readonly settling: Map<RunId, Promise<void>>
  /** Called, and waited for, between any two steps: for tests that die or look there. Production has none. */
  readonly point?: (name: WorkspacePoint) => void | Promise<void>
  /** Whoever is in the way may have died: takes over what was lost, settles what is left. */
  readonly lookAfterOthers: (repo: string) => Promise<void>
}

/** Tells whatever is under way in a workspace to stop: a git command, a wait for the lock, the check. */
export class Brake {
  /** Of the claim that it belongs to, if there is one. */
  readonly fence: number | undefined
  readonly #controller = new AbortController()
  #command: Pick<Supervised, 'stop'> | undefined
  why: Exclude<StopReason, 'timeout'> | undefined

  constructor(fence?: number) {
    this.fence = fence
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  readonly stop = (why: Exclude<StopReason, 'timeout'>): void => {
    this.why ??= why
    this.#controller.abort(why)
    this.#command?.stop(why)
  }

  /** From now on this is what is stopped. */
  holds(command: Pick<Supervised, 'stop'>): void {
    this.#command = command
    if (this.why !== undefined) command.stop(this.why)
  }
}

/** The repository of a workspace, as it is now. */
export async function repositoryOf(git: Git, { repo, top }: Pick<Workspace, 'repo' | 'top'>): Promise<Repository> {
  const found = await repositoryAt(git, { commonDir: repo, top })
  if (found !== undefined) return found
  throw new HoldfastError('workspace/repository-gone', `there is no repository at ${top} any more`, {
    remedy: 'put it back where it was, then `holdfast workspace retry`',
  })
}

/** The tree of an attempt, by its fence. */
export const treePlace = ({ folder }: Pick<Workspace, 'folder'>, opening: number) =>
  placeIn(join(folder, String(opening)))

/** What one try of the check has for itself, by its mark: whoever comes back late touches no other's. */
const tryFolder = ({ folder }: Pick<Workspace, 'folder'>, mark: string) => join(folder, 'checks', mark)

/** Where the check runs: a fresh checkout of what would land. */
export function checkPlace(workspace: Pick<Workspace, 'folder'>, mark: string) {
  const folder = tryFolder(workspace, mark)
  return {
    folder: join(folder, 'tree'),
    git: join(folder, 'git'),
    index: join(folder, 'index'),
    temporary: join(folder, 'tmp'),
    /** Its supervisor's. */
    command: join(folder, 'command'),
  }
}

/** The marks of the tries of which something is left; one that is being removed is over, and has a name with a dot. */
export const checksOf = async ({ folder }: Pick<Workspace, 'folder'>): Promise<string[]> =>
  (await readdir(join(folder, 'checks')).catch(() => [])).filter((name) => !name.startsWith('.'))

export const removeCheck = (git: Git, workspace: Pick<Workspace, 'folder'>, mark: string) =>
  removeFolder(git, tryFolder(workspace, mark))

/** The same for the same workspace, so that making the commit again makes the same one. */
export const messageOf = ({ agent, runId }: Pick<Workspace, 'agent' | 'runId'>) =>
  `Work of ${agent.replaceAll(/\s+/g, ' ')}\n\nHoldfast-Run: ${runId}\n`

export const extrasOf = ({ request: { copy, link } }: Pick<Workspace, 'request'>) => ({
  ...(copy === undefined ? {} : { copy }),
  ...(link === undefined ? {} : { link }),
})

export const apartOf = ({ request: { copy = [], link = [] } }: Pick<Workspace, 'request'>) => [...copy, ...link]

/** Until something was committed, or so long, or the signal. */
export async function waitForChange(
  { store, clock }: Pick<WorkspacePorts, 'store' | 'clock'>,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  const changed = new AbortController()
  const stop = () => changed.abort()
  const unlisten = store.onChange(stop)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted === true) stop()
  await sleep(clock, ms, changed.signal)
  unlisten()
  signal?.removeEventListener('abort', stop)
}
