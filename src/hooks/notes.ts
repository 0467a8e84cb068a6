import { existsSync, readFileSync } from 'node:fs'
import { readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '../base/clock.ts'
import { errorCode } from '../base/files.ts'
import { LIMITS } from '../base/limits.ts'
import { thisPlace } from '../processes/identity.ts'
import type { Client } from '../sessions/session.ts'

/** What bin/hook.cjs remembers of sessions: how many events each had, and what its client was last shown. */
const notesFolder = (home: string) => join(home, 'hooks', 'sessions')

/**
 * Which delivery the client was last shown. Null: none. Undefined: nobody knows, as of a session that has no notes here and
 * may live on another machine. Read at once: a tool call waits for it, and on a busy machine each way through the thread
 * pool costs more than the file.
 */
export function lastShown(home: string, client: Client, sessionId: string): string | null | undefined {
  const note = join(notesFolder(home), `${client}-${sessionId}`)
  try {
    return readFileSync(`${note}.shown`, 'utf8')
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') return undefined
    const log = `${note}.${bootName()}.log`
    return existsSync(log) ? null : undefined
  }
}

/** As bin/hook.cjs names it: empty where the system does not say. */
const bootName = () => (process.platform === 'linux' ? thisPlace().boot.slice(0, 8) : '')

/** Removes the notes of sessions that nobody has heard of for long. A session that comes back all the same gets new ones. */
export async function sweepNotes(home: string, clock: Clock): Promise<void> {
  for (const name of await readdir(notesFolder(home)).catch(() => [])) {
    const path = join(notesFolder(home), name)
    const { mtimeMs } = await stat(path)
    if (clock.now() - mtimeMs > LIMITS.sessionNotesKeptMs) await unlink(path).catch(() => {})
  }
}
