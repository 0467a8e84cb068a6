import { readFile, readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'

import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import type { Client } from '../sessions/session.ts'
import { Unreadable, fieldsOf, sessionIn } from './event.ts'

/** What bin/hook.cjs remembers of a session: the number of its last event, and what its client was last shown. */
const notesFolder = (home: string) => join(home, 'hooks', 'sessions')

/** Which delivery the client was last shown, for an event that it sent by itself. Undefined: nobody knows. */
export async function shownIn(home: string, client: Client, input: string): Promise<string | null | undefined> {
  const fields = fieldsOf(input)
  const sessionId = fields instanceof Unreadable ? undefined : sessionIn(fields)
  return sessionId === undefined ? undefined : lastShown(home, client, sessionId)
}

/** Undefined: there is no note of it here. */
export async function lastShown(home: string, client: Client, sessionId: string): Promise<string | null | undefined> {
  try {
    const note = JSON.parse(await readFile(join(notesFolder(home), `${client}-${sessionId}.json`), 'utf8')) as unknown
    const shown = (note as { readonly shown?: unknown } | null)?.shown
    return typeof shown === 'string' || shown === null ? shown : undefined
  } catch {
    return undefined
  }
}

/** Removes the notes of sessions that nobody has heard of for long. A session that comes back all the same gets new ones. */
export async function sweepNotes(home: string, clock: Clock): Promise<void> {
  for (const name of await readdir(notesFolder(home)).catch(() => [])) {
    const path = join(notesFolder(home), name)
    const { mtimeMs } = await stat(path)
    if (clock.now() - mtimeMs > LIMITS.sessionNotesKeptMs) await unlink(path).catch(() => {})
  }
}
