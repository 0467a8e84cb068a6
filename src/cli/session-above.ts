import { LIMITS } from '../base/limits.ts'
import { processIdentity, thisPlace } from '../processes/identity.ts'
import type { ProcessIdentity } from '../processes/identity.ts'
import { readProcess } from '../processes/process-table.ts'
import { liveSessions } from '../sessions/session.ts'
import type { Session } from '../sessions/session.ts'
import type { Store } from '../store/store.ts'

/** By this Gemini CLI marks what its shell tool starts. It does not say which session that is. */
export const GEMINI_MARK = 'GEMINI_CLI'

/** Between a client and what it starts: shells, launchers, the shells of those. */
const MOST_LEVELS = 16

/**
 * The session of Gemini CLI whose process has started this one, some levels up. The nearest of all sessions counts: one of
 * another client in between is whom the process belongs to, and says so by a variable of its own.
 */
export async function geminiAbove(
  store: Store,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<Session | undefined> {
  if (variables[GEMINI_MARK] === undefined) return undefined
  const sessions = await store.read(liveSessions, LIMITS.lookedAfter)
  for (const process of processesAbove()) {
    const found = sessions.filter((session) => isProcessOf(session, process)).at(-1)
    if (found !== undefined) return found.client === 'gemini' ? found : undefined
  }
  return undefined
}

function* processesAbove(): Generator<ProcessIdentity> {
  let pid = process.ppid
  for (let level = 0; level < MOST_LEVELS && pid > 1; level += 1) {
    const identity = processIdentity(pid, thisPlace())
    if (identity === undefined) return
    yield identity
    pid = readProcess(pid)?.parent ?? 0
  }
}

function isProcessOf({ process: known }: Session, identity: ProcessIdentity): boolean {
  const { pid, startTime, boot, host } = (known ?? {}) as Partial<ProcessIdentity>
  return pid === identity.pid && startTime === identity.startTime && boot === identity.boot && host === identity.host
}
