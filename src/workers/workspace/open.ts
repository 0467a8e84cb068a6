import { join } from 'node:path'

import { HoldfastError, describeError, invariant } from '../../base/errors.ts'
import type { Git } from '../../git/git.ts'
import { fileAt, openRepository } from '../../git/repository.ts'
import type { OpenedRepository } from '../../git/repository.ts'
import { observe } from '../../git/shadow.ts'
import { isOpen, noteBoot, openTree } from '../../git/tree.ts'
import type { TreePlace } from '../../git/tree.ts'
import type { Claim } from '../../runs/claim.ts'
import type { Outcome } from '../../runs/finish.ts'
import { activateWorkspace, openWorkspace, restoreWorkspace, resumeWorkspace } from '../../workspace/open.ts'
import type { Opening, Progress } from '../../workspace/open.ts'
import { findWorkspace } from '../../workspace/workspace.ts'
import type { CapturedCheck, Workspace, WorkspaceRequest } from '../../workspace/workspace.ts'
import { refOf, untilStored } from '../execute.ts'
import type { Executor } from '../execute.ts'
import { endChecks } from './check.ts'
import { holdsRun, nameWork } from './name.ts'
import { Brake, checksOf, extrasOf, messageOf, repositoryOf, treePlace } from './ports.ts'
import type { WorkspacePorts } from './ports.ts'
import { currentCheckpoint, cutShort, isSound, triesOf } from './sound.ts'
import { sweepRepository } from './sweep.ts'

/** Where a run works. */
export type Opened =
  /** The command or the agent may be started, in this folder; a shadow changes nothing about that. */
  | { readonly kind: 'open'; readonly cwd?: string }
  /** It ends here, and nothing more is started. What a lost worker had under way is ended where that was started. */
  | { readonly kind: 'ends'; readonly outcome: Outcome; readonly cwd?: string }
  /** Another worker has it. */
  | { readonly kind: 'left' }

/**
 * The workspace of a run that was claimed, opened, opened to the end, or taken up again. What counts is what it was opened with,
 * whatever its agent has by now:
 *
 *   intent in the database ─▶ our ref ─▶ the tree ─▶ active in the database ─▶ whatever works in it is started
 */
export async function openFor(
  ports: WorkspacePorts,
  executor: Executor,
  claim: Claim,
  asked: WorkspaceRequest | undefined,
): Promise<Opened> {
  const brake = new Brake()
  executor.onCommand(claim.attempt.id, brake)
  const opening = { ports, executor, claim, git: { ...ports.git, signal: brake.signal } }
  const known = await untilStored(executor, () => ports.store.read(findWorkspace, claim.run.id))
  const request = known?.request ?? asked
  invariant(request !== undefined, `the workspace of ${claim.run.id} is not recorded`)
  const opened = await goIn(opening, request, known).catch((error: unknown): Opened => {
    if (brake.why === 'cancelled') return { kind: 'ends', outcome: { state: 'cancelled' } }
    if (brake.why !== undefined) throw error
    return cannotOpen(executor, request, error)
  })
  if (opened.kind !== 'ends' || request.mode === 'shadow') return opened
  return { ...opened, cwd: lastFolder(opening, known) }
}

async function goIn(opener: Opener, request: WorkspaceRequest, known: Workspace | undefined): Promise<Opened> {
  const opened = known === undefined ? await intend(opener, request) : go(known)
  return opened.kind === 'done' ? complete(opener, opened.workspace) : stopped(opened)
}

const folderOf = ({ ports, claim }: Opener) => join(ports.folder, claim.run.id)

/** Where it was at work, whether that is still there or not: never the user's own tree. */
function lastFolder(opener: Opener, known: Workspace | undefined): string {
  const { folder = folderOf(opener), opening, prefix = '' } = known ?? {}
  return join(treePlace({ folder }, opening ?? opener.claim.run.fence).tree, prefix)
}

interface Opener {
  readonly ports: WorkspacePorts
  readonly executor: Executor
  readonly claim: Claim
  readonly git: Git
}

const go = (workspace: Workspace): Progress => ({ kind: 'done', workspace })

function stopped(progress: Exclude<Progress, { kind: 'done' }>): Opened {
  return progress.kind === 'superseded' ? { kind: 'left' } : { kind: 'ends', outcome: { state: 'cancelled' } }
}

/** What is only watched runs all the same. */
function cannotOpen(executor: Executor, request: WorkspaceRequest, error: unknown): Opened {
  if (request.mode === 'transaction') {
    return { kind: 'ends', outcome: { state: 'failed', code: 'spawn', error: describeError(error) } }
  }
  executor.warn(`what this run changes is not watched: ${describeError(error)}`)
  return { kind: 'open' }
}

async function intend(opener: Opener, request: WorkspaceRequest): Promise<Progress> {
  const { ports, executor, claim, git } = opener
  const { host, store, point } = ports
  const repo = await openRepository(git, request.root)
  await ports.lookAfterOthers(repo.commonDir)
  await sweepRepository(ports, repo)
  const opening: Opening = {
    request,
    host,
    folder: folderOf(opener),
    repo: repo.commonDir,
    top: repo.top,
    prefix: repo.prefix,
    branch: branchOf(repo, request),
    base: repo.commit,
    ...(request.check === undefined ? {} : { validator: await capture(git, repo, request) }),
  }
  const opened = await untilStored(executor, () => store.apply(openWorkspace, refOf(claim), opening))
  await point?.('workspace/opened')
  return opened
}

function branchOf({ head, top }: OpenedRepository, { mode }: WorkspaceRequest): string {
  if (head.kind === 'branch') return head.ref
  if (mode === 'shadow') return ''
  throw new HoldfastError('workspace/no-branch', `no branch is checked out in ${top}, so there is nothing to land on`, {
    remedy: 'check one out: `git switch -c NAME`',
  })
}

/** The check as the base has it. What is not there, or cannot be executed, is said before anything is started. */
async function capture(git: Git, repo: OpenedRepository, request: WorkspaceRequest): Promise<CapturedCheck> {
  const { check } = request
  if (check === undefined) throw new Error('there is no check')
  if ('file' in check) {
    const found = await fileAt(git, repo, repo.commit, check.file)
    if (found?.executable === true) return { kind: 'file', file: check.file, blob: found.blob }
    throw wrongCheck(check.file, found === undefined ? 'is not a file of the last commit' : 'is not executable')
  }
  const file = programIn(check.command, repo.prefix)
  const found = file === undefined ? undefined : await fileAt(git, repo, repo.commit, file)
  if (found?.executable === false) throw wrongCheck(file!, 'is not executable')
  return {
    kind: 'command',
    command: check.command,
    ...(found === undefined ? {} : { file: file!, blob: found.blob }),
  }
}

/** `./scripts/check.sh --all` begins with a file of the repository; `npm test` does not. */
function programIn(command: string, prefix: string): string | undefined {
  const word = /^\s*(?:exec\s+|sh\s+|bash\s+)?(\.{0,2}[\w.+-]*\/[\w./+-]+)(?:\s|$)/.exec(command)?.[1]
  if (word === undefined || word.startsWith('/')) return undefined
  const path = join(prefix, word)
  return path.startsWith('..') ? undefined : path
}

const wrongCheck = (file: string, why: string) =>
  new HoldfastError('workspace/check', `the check ${file} ${why}`, {
    remedy: `commit it with its executable bit: \`chmod +x ${file} && git add ${file} && git commit\``,
  })

/** Brings an opened one to its end, and takes up again what was at work before. */
async function complete(opener: Opener, workspace: Workspace): Promise<Opened> {
  if (workspace.mode === 'shadow') return watch(opener, workspace)
  const { ports } = opener
  const active = await (workspace.state === 'opened' ? makeFirst(opener, workspace) : takeUp(opener, workspace))
  if (active.kind !== 'done') return stopped(active)
  await ports.point?.('workspace/active')
  return { kind: 'open', cwd: lastFolder(opener, active.workspace) }
}

async function makeFirst(opener: Opener, workspace: Workspace): Promise<Progress> {
  const { ports, executor, claim } = opener
  await makeTree(opener, workspace, workspace.base)
  return untilStored(executor, () => ports.store.apply(activateWorkspace, refOf(claim)))
}

/** Where the work went on before. If that is gone, or not whole: from a checkpoint that has all of it, without which nobody can say what had been done. */
async function takeUp(opener: Opener, known: Workspace): Promise<Progress> {
  const { ports, executor, claim } = opener
  const before = await checksOf(known)
  const active = await untilStored(executor, () => ports.store.apply(resumeWorkspace, refOf(claim)))
  // Of what it was when it was taken for done. Not before the claim was asked: they could be those of whoever took over.
  if (active.kind !== 'superseded') await endChecks(ports, known, before)
  if (active.kind !== 'done') return active
  const { workspace } = active
  const tries = () => untilStored(executor, triesOf(ports, workspace))
  const place = treePlace(workspace, workspace.opening!)
  const isThere = await isOpen(place)
  if (isThere && (await isSound(workspace, tries))) {
    await noteBoot(place)
    return active
  }
  // A command that is to be started was never started: nothing was done in its tree.
  const isNew = claim.run.request.kind === 'command'
  const from = isNew ? workspace.base : await currentCheckpoint(workspace, tries)
  if (from === null) throw isThere ? cutShort(place) : gone(place)
  await makeTree(opener, workspace, from)
  return untilStored(executor, () => ports.store.apply(restoreWorkspace, refOf(claim)))
}

const gone = ({ tree }: TreePlace) =>
  new HoldfastError('workspace/tree-gone', `its working tree, ${tree}, is gone`, { remedy: 'start the work again' })

/** In a folder of this attempt's own: who comes back late works beside the one that is used. */
async function makeTree({ ports, claim, git }: Opener, workspace: Workspace, base: string): Promise<void> {
  const repo = await repositoryOf(git, workspace)
  await nameWork(ports, repo, workspace, base, () => holdsRun(ports, refOf(claim)))
  const branch = `holdfast/${workspace.runId}`
  await openTree(git, repo, treePlace(workspace, claim.run.fence), { base, branch, ...extrasOf(workspace) })
}

/** What there is before the run; it works in the user's own tree. */
async function watch({ ports, executor, claim, git }: Opener, workspace: Workspace): Promise<Opened> {
  if (workspace.state === 'opened') {
    const repo = await repositoryOf(git, workspace)
    const { folder, base, openedAt, request } = workspace
    const seen = await observe(
      git,
      repo,
      { folder },
      {
        parent: base,
        message: messageOf(workspace),
        at: openedAt,
        ...(request.largestFile === undefined ? {} : { largestFile: request.largestFile }),
      },
    )
    await untilStored(executor, () => ports.store.apply(activateWorkspace, refOf(claim), seen.commit))
  }
  return { kind: 'open' }
}
