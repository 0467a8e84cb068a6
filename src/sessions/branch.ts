import type { ThreadId } from '../base/ids.ts'
import { viewThread } from '../threads/view.ts'
import type { Relative } from './tree.ts'

export interface Branch {
  readonly thread: Relative
  readonly children: readonly Branch[]
}

/** The family of a thread as a tree; whoever is seen twice, because somebody made a circle of parents, is drawn once. */
export function treeOf(id: ThreadId, family: readonly Relative[]): Branch | undefined {
  const drawn = new Set<ThreadId>()
  const grow = (thread: Relative): Branch => {
    drawn.add(thread.id)
    const own = family.filter(({ parentId }) => parentId === thread.id)
    return { thread, children: own.filter((child) => !drawn.has(child.id)).map(grow) }
  }
  const root = family.find((thread) => thread.id === id)
  return root === undefined ? undefined : grow(root)
}

/** What a thread is at: its session, else its latest run. */
export function doing({
  client,
  sessionState,
  runState,
  runCode,
  state,
}: Pick<Relative, 'client' | 'sessionState' | 'runState' | 'runCode' | 'state'>): string {
  if (state !== 'open') return state
  if (client !== null && sessionState !== null) return sessionState
  if (runState === null) return 'idle'
  return runCode === null ? runState : `${runState} (${runCode})`
}

export function viewBranch({ thread, children }: Branch): Record<string, unknown> {
  const { runId, runState, runCode, client, sessionState, pending } = thread
  return {
    ...viewThread(thread),
    doing: doing(thread),
    pending,
    ...(runId === null ? {} : { run: { id: runId, state: runState, ...(runCode === null ? {} : { code: runCode }) } }),
    ...(client === null ? {} : { session: { client, state: sessionState } }),
    children: children.map(viewBranch),
  }
}
