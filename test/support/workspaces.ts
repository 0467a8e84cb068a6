import type { RunId } from '../../src/base/ids.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import type { Claim } from '../../src/runs/claim.ts'
import type { AttemptRef } from '../../src/runs/attempt.ts'
import type { Submission } from '../../src/runs/submit.ts'
import type { Store } from '../../src/store/store.ts'
import { activateWorkspace, openWorkspace } from '../../src/workspace/open.ts'
import type { Opening } from '../../src/workspace/open.ts'
import { beginCheck, concludeCheck, prepareWorkspace, takeLanding } from '../../src/workspace/prepare.ts'
import { claimSettling } from '../../src/workspace/settle.ts'
import { findWorkspace } from '../../src/workspace/workspace.ts'
import type { CheckResult, Workspace, WorkspaceMode, WorkspaceRequest } from '../../src/workspace/workspace.ts'
import { LEASE_MS, addWorker, running, someIdentity } from './world.ts'

/** Commits that no git has seen: what the database makes of them does not depend on that. */
export const [BASE, WORK, TIP, LANDS] = ['b', 'a', 'c', 'd'].map((digit) => digit.repeat(40)) as [
  string,
  string,
  string,
  string,
]

export const passed: CheckResult = { verdict: 'passed', exitCode: 0, output: 'ok' }
export const failed: CheckResult = {
  verdict: 'failed',
  exitCode: 1,
  output: 'no',
  why: 'the check exited with status 1',
}

export const request = (mode: WorkspaceMode = 'transaction'): WorkspaceRequest => ({
  root: '/repo',
  mode,
  check: { command: 'npm test' },
})

export const opening = (more: Partial<Opening> = {}): Opening => ({
  request: request(),
  host: someIdentity().host,
  folder: '/holdfast/workspaces/run',
  repo: '/repo/.git',
  top: '/repo',
  prefix: '',
  branch: 'refs/heads/main',
  base: BASE,
  validator: { kind: 'command', command: 'npm test' },
  ...more,
})

export const prepared = {
  work: WORK,
  changed: ['a.txt'],
  changedCount: 1,
  linesAdded: 1,
  linesRemoved: 0,
  leftOut: [],
  leftOutCount: 0,
}

export const candidate = { checkedOn: TIP, sha: LANDS, conflicts: [], mark: 'ab'.repeat(16) }

export type Working = Claim & { readonly ref: AttemptRef }

/** A run that a worker holds, and that asked for a workspace. */
export async function claimed(store: Store, mode: WorkspaceMode = 'transaction', more: Partial<Submission> = {}) {
  const asked = { kind: 'command' as const, argv: ['true'] as const, cwd: '/repo', workspace: request(mode) }
  return running(store, { request: asked, host: someIdentity().host, ...more })
}

type Step = 'opened' | 'active' | 'prepared' | 'locked' | 'checking' | 'checked'
const STEPS: readonly Step[] = ['opened', 'active', 'prepared', 'locked', 'checking', 'checked']

/** The same, brought so far. */
export async function workingUpTo(store: Store, step: Step, more: Partial<Opening> = {}): Promise<Working> {
  const working = await claimed(store)
  const { ref } = working
  const acts: Record<Step, () => Promise<unknown>> = {
    opened: () => store.apply(openWorkspace, ref, opening(more)),
    active: () => store.apply(activateWorkspace, ref),
    prepared: () => store.apply(prepareWorkspace, ref, prepared),
    locked: () => store.apply(takeLanding, ref),
    checking: () => store.apply(beginCheck, ref, candidate),
    checked: () => store.apply(concludeCheck, ref, LANDS, passed),
  }
  for (const each of STEPS.slice(0, STEPS.indexOf(step) + 1)) await acts[each]()
  return working
}

/** A workspace whose run has ended, and the worker that settles it. */
export async function settlingAfter(store: Store, outcome: Outcome, more: Partial<Opening> = {}) {
  const working = await workingUpTo(store, 'checked', more)
  await store.apply(finishRun, working.ref, outcome)
  const workerId = await addWorker(store)
  await store.apply(claimSettling, working.run.id, { workerId, leaseMs: LEASE_MS })
  return { runId: working.run.id, workerId }
}

export async function workspaceOf(store: Store, runId: RunId): Promise<Workspace> {
  const found = await store.read(findWorkspace, runId)
  if (found === undefined) throw new Error(`there is no workspace of ${runId}`)
  return found
}
