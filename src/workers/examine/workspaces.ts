import { systemClock } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Git } from '../../git/git.ts'
import { requireGit } from '../../git/repository.ts'
import { thisPlace } from '../../processes/identity.ts'
import { detectSeal } from '../../processes/sealed.ts'
import type { Store } from '../../store/store.ts'
import { UNSETTLED, listWorkspaces } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import type { Finding } from './examine.ts'
import { homePaths } from '../home.ts'

/** Whether runs can have workspaces here, and which of them need somebody. */
export async function examineWorkspaces(store: Store, home: string, env: Git['env']): Promise<Finding[]> {
  const waiting = await store.read(listWorkspaces, {
    states: ['quarantined', ...UNSETTLED],
    limit: LIMITS.page,
  })
  return [await examineGit(home, env), await examineChecks(), ...waiting.flatMap((each) => examineOne(each) ?? [])]
}

/** Nothing but workspaces needs it, so what is missing is worth a word and no failure. */
async function examineGit(home: string, env: Git['env']): Promise<Finding> {
  try {
    await requireGit({ clock: systemClock, env, rooms: homePaths(home).gitRooms })
    return { check: 'git', status: 'ok', detail: 'there, and new enough for workspaces' }
  } catch (error) {
    const remedy = error instanceof HoldfastError ? error.remedy : undefined
    const detail = error instanceof HoldfastError ? error.message : describeError(error)
    return { check: 'git', status: 'warn', detail, remedy: remedy ?? 'install git 2.39 or newer to use workspaces' }
  }
}

/** What a check may touch. */
async function examineChecks(): Promise<Finding> {
  const { kind, detail } = await detectSeal()
  if (kind === 'sealed')
    return { check: 'checks', status: 'ok', detail: `kept from writing outside of their checkout: ${detail}` }
  return {
    check: 'checks',
    status: 'warn',
    detail: `the checks of workspaces can write wherever you can: ${detail}`,
    remedy:
      'allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or an AppArmor rule for unshare) if that matters',
  }
}

function examineOne({ runId, state, host, reason, error }: Workspace): Finding | undefined {
  if (state === 'quarantined') {
    return {
      check: 'workspace',
      status: 'warn',
      detail: `${runId} is in quarantine: ${reason ?? 'what happened to it cannot be proven'}`,
      remedy: `\`holdfast workspace diff ${runId}\` shows it; then \`retry\`, \`keep\` or \`discard\``,
    }
  }
  if (error === null) return undefined
  const where = host === thisPlace().host ? '' : ` on ${host}`
  return {
    check: 'workspace',
    status: 'warn',
    detail: `${runId} is ${state}${where}, and something is in the way: ${error}`,
    remedy: 'mend that; a daemon there tries again by itself',
  }
}
