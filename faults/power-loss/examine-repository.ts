import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { thisPlace } from '../../src/processes/identity.ts'
import { listRuns } from '../../src/runs/run.ts'
import type { Runtime } from '../../src/runtime.ts'
import type { Store } from '../../src/store/store.ts'
import { unsettledOn } from '../../src/workspace/settle.ts'
import { listWorkspaces, refOfRun } from '../../src/workspace/workspace.ts'
import type { Workspace } from '../../src/workspace/workspace.ts'
import { until } from '../../test/support/until.ts'
import type { Claim } from './place.ts'
import {
  BRANCH,
  FILES_AFTER,
  FILES_BEFORE,
  REPOSITORY,
  askGit,
  damageIn,
  removeRefLocks,
  unlike,
} from './repository.ts'

/** More than a machine with nothing to spare takes. */
const RECOVERED_MS = 20_000
const SWEPT_MS = 3_000

export const hasRepository = (root: string) => existsSync(join(root, REPOSITORY))

/** Looks at a repository as the power loss left it, lets a worker recover what was under way, and looks at it again. */
export async function wrongInRepository(root: string, runtime: Runtime, claims: readonly Claim[]): Promise<string[]> {
  const { store } = runtime
  const before = [...damageIn(root), ...(await againstDatabase(root, store)), ...lostClaims(root, claims)]
  if (before.length > 0) return before
  removeRefLocks(root)
  await recover(root, runtime)
  const after = [...damageIn(root), ...(await againstDatabase(root, store)), ...lostClaims(root, claims)]
  return [...after, ...(await halfDone(root, store))].map((problem) => `after recovery: ${problem}`)
}

/** What a daemon does that is started again, until nothing is left to do; what it does every few seconds is not waited for. */
async function recover(root: string, runtime: Runtime): Promise<void> {
  const { store } = runtime
  const worker = await runtime.registerWorker('daemon', { concurrency: 2 })
  await worker.start()
  const open = async () => [
    ...(await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 10 })),
    ...(await store.read(unsettledOn, thisPlace().host, 10)),
  ]
  await until(
    'everything is settled',
    async () => {
      if ((await open()).length === 0) return true
      await worker.tend()
      return undefined
    },
    RECOVERED_MS,
  )
  // What it does beside: folders that nobody uses any more are removed.
  await worker.settled()
  await until('nothing is left', async () => (leftIn(root).length === 0 ? true : undefined), SWEPT_MS).catch(() => {})
  await worker.drain(0)
}

const workspacesIn = (store: Store): Promise<readonly Workspace[]> => store.read(listWorkspaces, { limit: 10 })

const tipOf = (root: string, ref: string) => askGit(root, 'rev-parse', '--verify', '-q', `${ref}^{commit}`).text

/** What the database says of a landing the repository says, too. */
async function againstDatabase(root: string, store: Store): Promise<string[]> {
  return (await workspacesIn(store)).flatMap(({ state, sha, work, runId }) => {
    if (state === 'landed' && tipOf(root, BRANCH) !== sha) return [`${runId} has landed, and the branch is not at it`]
    if ((state === 'discarded' || state === 'kept') && work !== null && askGit(root, 'cat-file', '-e', work).code !== 0)
      return [`${runId} is ${state}, and its work is not there`]
    return []
  })
}

const KEPT = 'refs/heads/kept'

/** Somebody was told: the branch, the ref or the branch of their own has all of the work. */
function lostClaims(root: string, claims: readonly Claim[]): string[] {
  return claims.flatMap(({ what, workspace }) => {
    if (workspace === undefined) return []
    // Whoever has it kept is told so when it is, and its ref has gone by then.
    const refs = { landed: [BRANCH], kept: [KEPT], discarded: [refOfRun(workspace.run), KEPT] }[workspace.state]
    const wrong = refs.map((ref) => ({ ref, how: unlike(root, ref, FILES_AFTER) }))
    if (wrong.some(({ how }) => how === undefined)) return []
    return [`acknowledged and lost: ${what} (${wrong.map(({ ref, how }) => `${ref}: ${how}`).join('; ')})`]
  })
}

/** What is on its way out, too: a removal that is under way would go on in the next disk, which is made in the same place. */
function leftIn(root: string): string[] {
  const workspaces = join(root, 'home', 'workspaces')
  const going = existsSync(workspaces) ? readdirSync(workspaces).filter((name) => name.startsWith('.going-')) : []
  return [...['index.lock', 'holdfast'].filter((name) => existsSync(join(root, REPOSITORY, '.git', name))), ...going]
}

/** The branch has all of the work or nothing of it, the files in the working tree are those of its HEAD, and nothing is locked. */
async function halfDone(root: string, store: Store): Promise<string[]> {
  const workspaces = await workspacesIn(store)
  const landed = workspaces.some(({ state }) => state === 'landed')
  const stuck = workspaces.filter(({ state }) => !['landed', 'discarded', 'kept'].includes(state))
  const wrong = unlike(root, BRANCH, landed ? FILES_AFTER : FILES_BEFORE)
  const status = askGit(root, 'status', '--porcelain', '--untracked-files=all').text
  return [
    ...stuck.map(({ state, reason, error }) => `the work is ${state}: ${reason ?? error ?? ''}`),
    ...(wrong === undefined ? [] : [`the branch ${landed ? 'has landed' : 'has not'}, and differs in ${wrong}`]),
    ...(status === '' ? [] : [`the working tree is not that of HEAD: ${status.replaceAll('\n', ', ')}`]),
    ...leftIn(root).map((name) => `${name} is left`),
  ]
}
