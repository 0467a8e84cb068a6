import { describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { changedPaths } from '../../git/diff.ts'
import { objectsOf, observe } from '../../git/shadow.ts'
import { findRun } from '../../runs/run.ts'
import { observedWorkspace } from '../../workspace/settle.ts'
import type { Observation } from '../../workspace/settle.ts'
import type { CheckResult } from '../../workspace/workspace.ts'
import { NO_CHECK, runCheck } from './check.ts'
import type { Checked } from './check.ts'
import { settles } from './name.ts'
import { Brake, messageOf } from './ports.ts'
import type { Settling } from './settle.ts'

/** The run has ended and is not touched any more: what it changed, whether the check passes on that, and what a transaction would have done. */
export async function settleShadow(settling: Settling): Promise<void> {
  const { ports, workspace } = settling
  const { store, workerId } = ports
  const seen = await look(settling).catch((error: unknown) => notSeen(describeError(error)))
  await ports.point?.('workspace/observed')
  await store.apply(observedWorkspace, workspace.runId, workerId, seen)
}

export const notSeen = (error: string): Observation => ({
  lands: false,
  verdict: NO_CHECK,
  reason: 'it could not be watched',
  error,
  changed: [],
  changedCount: 0,
  linesAdded: 0,
  linesRemoved: 0,
  leftOut: [],
  leftOutCount: 0,
})

async function look(settling: Settling): Promise<Observation> {
  const { ports, git, repo, workspace } = settling
  const { folder, work: before, base, openedAt: at, runId } = workspace
  if (before === null) return notSeen('what there was before the run was not recorded')
  const after = await observe(git, repo, { folder }, { parent: before, message: messageOf(workspace), at })
  const objects = objectsOf({ folder })
  const changes = await changedPaths(git, repo, { from: before, to: after.commit, objects })
  const run = await ports.store.read(findRun, runId)
  const { leftOut, leftOutCount } = after
  const seen = { ...changes, leftOut, leftOutCount, error: null }
  if (run?.state !== 'succeeded') {
    const reason = run?.state === 'cancelled' ? 'its run was cancelled' : `its run failed (${run?.code ?? 'internal'})`
    return { ...seen, lands: false, verdict: NO_CHECK, reason }
  }
  const verdict = await verdictOn(settling, { commit: after.commit, base: before ?? base, work: after.commit, objects })
  const lands = verdict.verdict === 'passed' || verdict.verdict === 'none'
  return { ...seen, lands, verdict, reason: verdict.why ?? null }
}

async function verdictOn({ ports, repo, workspace }: Settling, checked: Checked): Promise<CheckResult> {
  if (workspace.validator === null) return NO_CHECK
  for (let round = 1; round <= LIMITS.checkRounds; round += 1) {
    const attempt = { mark: ports.random.hex(16), isMine: () => settles(ports, workspace) }
    const verdict = await runCheck(ports, repo, workspace, checked, attempt, new Brake())
    if (verdict !== undefined) return verdict
  }
  throw new Error('its check was cut off again and again')
}
