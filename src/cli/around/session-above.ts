import { LIMITS } from '../../base/limits.ts'
import { processIdentity, thisPlace } from '../../processes/identity.ts'
import type { ProcessIdentity } from '../../processes/identity.ts'
import { MARK_VARIABLE, carriesMark, readProcess } from '../../processes/process-table.ts'
import { programNames } from '../../processes/program-names.ts'
import { latestSessions } from '../../sessions/session.ts'
import type { Session } from '../../sessions/session.ts'
import type { Store } from '../../store/store.ts'

/** By this Gemini CLI marks what its shell tool starts. It does not say which session that is. */
export const GEMINI_MARK = 'GEMINI_CLI'

/** Between a client and what it starts: shells, launchers, the shells of those. */
const MOST_LEVELS = 16

/** A script of Node; as bin/hook.cjs knows it. */
const GEMINI_NAME = /^gemini(-cli)?(\.[cm]?js)?$/

/** `unknown`: the session around one of a Gemini CLI that nobody here has heard of. */
type Above = Session | 'unknown' | undefined

/**
 * The session of Gemini CLI whose process has started this one, some levels up. The nearest of all sessions counts: one of
 * another client in between is whom the process belongs to, and says so by a variable of its own (`named`). A Gemini CLI without
 * our hooks in between is another one than that around it, whose inbox is not its own. What is around a run is not looked at: it
 * has a thread of its own.
 */
export async function sessionAbove(
  store: Store,
  variables: Readonly<Record<string, string | undefined>>,
  named: readonly Session[],
): Promise<Above> {
  if (variables[GEMINI_MARK] === undefined) return undefined
  const sessions = [...named, ...(await store.read(latestSessions, LIMITS.lookedAfter))]
  let isInUnknown = false
  for (const process of processesAbove(variables[MARK_VARIABLE]?.split('.').at(-1))) {
    const found = sessions.find((session) => isProcessOf(session, process))
    if (found !== undefined && isInUnknown) return 'unknown'
    if (found !== undefined) return found.client === 'gemini' || named.includes(found) ? found : undefined
    isInUnknown ||= programNames(process.pid).some((name) => GEMINI_NAME.test(name))
  }
  return undefined
}

/** Whether the process of it would have been met above this one, had it been there. */
export const hasProcess = ({ process: known }: Session): boolean =>
  (known as Partial<ProcessIdentity> | null)?.startTime !== undefined

function* processesAbove(mark: string | undefined): Generator<ProcessIdentity> {
  let pid = process.ppid
  for (let level = 0; level < MOST_LEVELS && pid > 1; level += 1) {
    const identity = processIdentity(pid, thisPlace())
    if (identity === undefined || (mark !== undefined && !carriesMark(pid, mark))) return
    yield identity
    pid = readProcess(pid)?.parent ?? 0
  }
}

function isProcessOf({ process: known }: Session, identity: ProcessIdentity): boolean {
  const { pid, startTime, boot, host } = (known ?? {}) as Partial<ProcessIdentity>
  return pid === identity.pid && startTime === identity.startTime && boot === identity.boot && host === identity.host
}
