import { LIMITS } from '../../base/limits.ts'
import { thisPlace } from '../../processes/identity.ts'
import type { Store } from '../../store/store.ts'
import { UNSETTLED, listWorkspaces } from '../../workspace/workspace.ts'
import type { Workspace } from '../../workspace/workspace.ts'
import type { Finding } from './examine.ts'

/** Which of them need somebody. */
export async function examineWorkspaces(store: Store): Promise<Finding[]> {
  const waiting = await store.read(listWorkspaces, {
    states: ['quarantined', ...UNSETTLED],
    limit: LIMITS.page,
  })
  return waiting.flatMap((each) => examineOne(each) ?? [])
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
    remedy: `mend that; a daemon there tries again by itself${state === 'decided' ? `, or \`holdfast workspace discard ${runId}\` gives it up` : ''}`,
  }
}
