import { LIMITS } from '../../base/limits.ts'
import { putOnTop } from '../../git/on-top.ts'
import { readRef } from '../../git/refs.ts'
import { decideAgain, readyWorkspace, takeLandingLate } from '../../workspace/settle.ts'
import type { CheckResult } from '../../workspace/workspace.ts'
import { runCheck } from './check.ts'
import { settles } from './name.ts'
import { Brake } from './ports.ts'
import type { Settling } from './settle.ts'

/**
 * A person asked for it: on top of the branch as it is now, checked there unless that very tree was checked before, and then
 * landed like any other. Whatever stands in the way, it is ready as before, with the reason.
 */
export async function landAgain(settling: Settling, land: (settling: Settling) => Promise<void>): Promise<void> {
  const { ports, git, repo, workspace } = settling
  const { store, workerId } = ports
  const { runId, branch, base, openedAt: at } = workspace
  if ((await store.apply(takeLandingLate, runId, workerId)) === undefined)
    throw new Error('another one is landing in its repository')
  const stays = (why: string, conflicts?: readonly string[]) =>
    store.apply(readyWorkspace, runId, workerId, why, conflicts)
  const tip = await readRef(git, repo, branch)
  if (tip === undefined) return void (await stays(`the branch ${branch} is gone`))
  const onTop = await putOnTop(git, repo, { work: workspace.work!, base, target: tip, at })
  if (onTop.kind === 'conflict') {
    return void (await stays(`it and ${branch} both changed the same lines`, onTop.paths))
  }
  const verdict = await verdictOn(settling, onTop.commit)
  if (verdict.verdict !== 'passed' && verdict.verdict !== 'none')
    return void (await stays(verdict.why ?? 'the check did not pass'))
  const decided = await store.apply(decideAgain, runId, workerId, { checkedOn: tip, sha: onTop.commit, verdict })
  if (decided !== undefined) await land({ ...settling, workspace: decided })
}

/** Nothing outlives this process: whoever tries again runs it again. */
async function verdictOn({ ports, repo, workspace }: Settling, commit: string): Promise<CheckResult> {
  const { sha, verdict, base, work } = workspace
  if (sha === commit && verdict !== null && workspace.conflicts.length === 0) return verdict
  for (let round = 1; round <= LIMITS.checkRounds; round += 1) {
    const attempt = { mark: ports.random.hex(16), isMine: () => settles(ports, workspace) }
    const found = await runCheck(ports, repo, workspace, { commit, base, work: work! }, attempt, new Brake())
    if (found !== undefined) return found
  }
  throw new Error('its check was cut off again and again')
}
