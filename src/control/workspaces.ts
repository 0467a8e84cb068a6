import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import type { RunId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { askDiscard, askKeep, askLand, askRetry } from '../workspace/ask.ts'
import type { Asked, Asker } from '../workspace/ask.ts'
import { countWorkspaces, findWorkspace, listWorkspaces } from '../workspace/workspace.ts'
import type { Workspace } from '../workspace/workspace.ts'
import { viewWorkspace } from '../workspace/view.ts'
import type { Desk } from './desk.ts'
import { notThere, theWorkspace } from './find.ts'
import { filled } from './page.ts'

/** What runs did to files, and what people decide about it. */

type View = Answer<'workspaces.show'>

export async function list(desk: Desk, ask: Ask<'workspaces.list'>): Promise<Answer<'workspaces.list'>> {
  const { limit = LIMITS.page, after, state, mode } = ask
  if (after !== undefined && (await workspaceOf(desk, after as RunId)) === undefined) throw notThere('workspace', after)
  const filter = { limit, ...filled({ states: state, mode, after: after as RunId | undefined }) }
  const items = (await desk.read(listWorkspaces, filter)).map((each) => viewWorkspace(each) as View)
  const last = items.at(-1)
  return { items, ...(items.length === limit && last !== undefined ? { next: last.runId } : {}) }
}

const workspaceOf = (desk: Desk, id: RunId) => desk.read(findWorkspace, id)

/** What belongs to a run, if it has any. */
export async function viewOf(desk: Desk, id: RunId): Promise<View | undefined> {
  const found = await workspaceOf(desk, id)
  return found === undefined ? undefined : (viewWorkspace(found) as View)
}

export async function show(desk: Desk, { run }: Ask<'workspaces.show'>): Promise<View> {
  return viewWorkspace(await theWorkspace(desk.runtime.store, run)) as View
}

export async function diff(desk: Desk, { run }: Ask<'workspaces.diff'>): Promise<Answer<'workspaces.diff'>> {
  const workspace = await theWorkspace(desk.runtime.store, run)
  const { from, to, text, cut } = await (await desk.runtime.workspaces()).diff(workspace, LIMITS.diffBytes)
  return { runId: workspace.runId, state: workspace.state, from, to, diff: text, truncated: cut }
}

export const land = (desk: Desk, { run, by }: Ask<'workspaces.land'>) =>
  decided(desk, run, by, (runId, who) => desk.apply(askLand, runId, who))
export const discard = (desk: Desk, { run, by }: Ask<'workspaces.discard'>) =>
  decided(desk, run, by, (runId, who) => desk.apply(askDiscard, runId, who))
export const retry = (desk: Desk, { run, by }: Ask<'workspaces.retry'>) =>
  decided(desk, run, by, (runId, who) => desk.apply(askRetry, runId, who))
export const keep = (desk: Desk, { run, branch, by }: Ask<'workspaces.keep'>) =>
  decided(desk, run, by, (runId, who) => desk.apply(askKeep, runId, who, branch ?? `holdfast/${runId}`))

async function decided(
  desk: Desk,
  given: string,
  by: string | undefined,
  ask: (runId: RunId, who: Asker) => Promise<Asked>,
): Promise<View> {
  const { runId } = await theWorkspace(desk.runtime.store, given)
  return settled(desk, accepted(await ask(runId, { by: desk.decider(by).by }), runId))
}

function accepted(asked: Asked, given: string): Workspace {
  if (asked.kind === 'asked') return asked.workspace
  if (asked.kind === 'unknown-workspace') throw notThere('workspace', given)
  throw new HoldfastError('workspace/refused', asked.why, {
    remedy: `\`holdfast workspace show ${asked.workspace.runId}\` says what can be done with it`,
  })
}

const WAITING: readonly string[] = ['ready', 'discarded', 'quarantined']

/** Done here and now where its repository is; elsewhere by a daemon of that machine. */
async function settled(desk: Desk, { runId, state }: Workspace): Promise<View> {
  await (await desk.runtime.workspaces()).settle(runId)
  const found = await workspaceOf(desk, runId)
  if (found === undefined) throw notThere('workspace', runId)
  // What could not be done at all is as it was, with the reason; what could not be done yet still has the wish.
  if (found.error !== null && found.wish === null && found.state === state && WAITING.includes(state)) {
    throw new HoldfastError('workspace/refused', found.error, {
      remedy: 'mend that, or give another name with `--branch`, and ask again',
    })
  }
  return viewWorkspace(found) as View
}

/** Those that wait for a person. */
export async function waitingOnes(
  desk: Desk,
): Promise<{ readonly all: Record<string, number>; readonly need: number }> {
  const counts = await desk.read(countWorkspaces)
  const all = Object.fromEntries(counts.map(({ state, count }) => [state, count]))
  return { all, need: (all['ready'] ?? 0) + (all['quarantined'] ?? 0) }
}
