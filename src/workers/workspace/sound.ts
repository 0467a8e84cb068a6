import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { HoldfastError, describeError } from '../../base/errors.ts'
import { errorCode, writeFileAtomic } from '../../base/files.ts'
import type { RunId } from '../../base/ids.ts'
import { isOfThisBoot, isOpen } from '../../git/tree.ts'
import type { TreePlace } from '../../git/tree.ts'
import { writeOut } from '../../git/write-out.ts'
import { findRun } from '../../runs/run.ts'
import type { Store } from '../../store/store.ts'
import { triesOn } from '../../workspace/quiet.ts'
import { findWorkspace } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import { treePlace } from './ports.ts'
import type { WorkspacePorts } from './ports.ts'

/**
 * What an agent had done when all of it was on disk, by the number of its tries: it holds as long as that number does. Nobody has to take it
 * back before something is written, and one who writes it late says nothing wrong.
 */
interface Kept {
  readonly tries: number
  /** The tree that was written out. */
  readonly opening?: number
  /** The commit of what was there. */
  readonly work?: string
}

/** How often something was begun that can write in the tree. */
export type Tries = () => Promise<{ readonly tries: number; readonly open: number }>

export const triesOf =
  ({ store }: { readonly store: Store }, { threadId }: Pick<Workspace, 'threadId'>): Tries =>
  () =>
    store.read(triesOn, threadId)

/**
 * Whether what was written in a tree can be relied upon. While work is under way nobody syncs it: after a power loss any of it may be missing or empty, of
 * what was checked out, too, and would land so. So it has to be of this boot, or to have been written out after the last that was done in it.
 */
export async function isSound(workspace: Workspace, triesNow: Tries): Promise<boolean> {
  const { opening } = workspace
  if (opening === null) return false
  if (await isOfThisBoot(treePlace(workspace, opening))) return true
  const kept = await keptOf(workspace)
  return kept?.opening === opening && kept.tries === (await triesNow()).tries
}

/** The last checkpoint, if nothing was done since: an older one would be a tree of which the conversation knows more than there is. */
export async function currentCheckpoint(workspace: Workspace, triesNow: Tries): Promise<string | null> {
  const { work } = workspace
  if (work === null) return null
  const kept = await keptOf(workspace)
  return kept?.work === work && kept.tries === (await triesNow()).tries ? work : null
}

/**
 * The tries were counted before: what is begun meanwhile makes this void by itself. With something under way nobody could say what it holds for. Where
 * it cannot be written the run goes on: only another boot would ask for it.
 */
export async function keep(
  { warn }: Pick<WorkspacePorts, 'warn'>,
  workspace: Workspace,
  { tries, open }: Awaited<ReturnType<Tries>>,
  what: Omit<Kept, 'tries'>,
): Promise<void> {
  if (open > 0) return
  try {
    const kept = await keptOf(workspace)
    const known = kept?.tries === tries ? kept : { tries }
    await writeFileAtomic(keptIn(workspace), JSON.stringify({ ...known, ...what }))
  } catch (error) {
    warn(`a power loss would end ${workspace.runId}: ${describeError(error)}`)
  }
}

/** Its tree, written out to the disk; nothing where that is not certain. */
export async function writtenOut(
  { git }: Pick<WorkspacePorts, 'git'>,
  workspace: Workspace,
  { tries }: { readonly tries: number },
): Promise<Pick<Kept, 'opening'>> {
  const opening = workspace.opening!
  const kept = await keptOf(workspace)
  if (kept?.tries === tries && kept.opening === opening) return { opening }
  const place = treePlace(workspace, opening)
  // One that lost its power before must not be called whole now.
  const isWhole = (await isOpen(place)) && (await isOfThisBoot(place))
  return isWhole && (await writeOut(git, place.folder)) ? { opening } : {}
}

/** Its worker stops in order. What a command of its own writes goes on without us, and nobody knows until when. */
export async function letGoOf(ports: WorkspacePorts, runId: RunId): Promise<void> {
  const { store } = ports
  const workspace = await store.read(findWorkspace, runId)
  if (workspace?.state !== 'active' || workspace.mode === 'shadow' || workspace.opening === null) return
  if ((await store.read(findRun, runId))?.request.kind !== 'agent') return
  const at = await triesOf(ports, workspace)()
  if (at.open === 0) await keep(ports, workspace, at, await writtenOut(ports, workspace, at))
}

const keptIn = ({ folder }: Pick<Workspace, 'folder'>) => join(folder, 'kept.json')

async function keptOf(workspace: Workspace): Promise<Kept | undefined> {
  try {
    return JSON.parse(await readFile(keptIn(workspace), 'utf8')) as Kept
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

export const cutShort = ({ tree }: TreePlace) =>
  new HoldfastError(
    'workspace/tree-gone',
    `the machine went down, and what was written in ${tree} may not all be there`,
    {
      remedy: 'start the work again',
    },
  )
