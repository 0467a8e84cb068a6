import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { HoldfastError } from '../../base/errors.ts'
import { writeFileAtomic } from '../../base/files.ts'
import type { Randomness } from '../../base/ids.ts'
import { lastEventSeq } from '../../events/event.ts'
import { findStoreIdentity, nameStore } from '../../store/identity.ts'
import type { Store } from '../../store/store.ts'

/** How far this home folder has seen its database go. */
interface Seen {
  readonly store: string
  readonly seq: number
}

const fileIn = (home: string) => join(home, 'seen.json')

/**
 * A database that is behind what this home folder has seen of it was restored from an older backup. Whatever happened
 * since is missing in it, so going on as if nothing were the matter could do things twice.
 */
export async function refuseOlderBackup(
  home: string,
  store: Store,
  random: Randomness,
  accept: boolean,
): Promise<void> {
  const id = (await store.read(findStoreIdentity))?.id ?? (await store.apply(nameStore, random.hex(16)))
  const seen = readSeen(home)
  const { seq } = await store.read(lastEventSeq)
  if (seen === undefined || seen.store !== id || seq >= seen.seq) return
  if (accept) return writeSeen(home, { store: id, seq })
  throw new HoldfastError(
    'store/older-backup',
    `this database ends at event ${seq}, but ${home} has seen event ${seen.seq} of it: it was restored from an older backup`,
    { remedy: 'restore a newer one; or, if what happened since may be forgotten, start once with --accept-restore' },
  )
}

export async function rememberSeen(home: string, store: Store): Promise<void> {
  const id = (await store.read(findStoreIdentity))?.id
  const { seq } = await store.read(lastEventSeq)
  const seen = readSeen(home)
  if (id === undefined || (seen?.store === id && seen.seq >= seq)) return
  await writeSeen(home, { store: id, seq })
}

/** After a restore that somebody asked for. */
export async function rememberRestored(
  home: string,
  { id, seq }: { readonly id: string | undefined; readonly seq: number },
): Promise<void> {
  if (id !== undefined) await writeSeen(home, { store: id, seq })
}

/** How far this home folder has seen this very database go. */
export function seenOf(home: string, store: string): Seen | undefined {
  const seen = readSeen(home)
  return seen?.store === store ? seen : undefined
}

const writeSeen = (home: string, seen: Seen) => writeFileAtomic(fileIn(home), JSON.stringify(seen), { durable: false })

function readSeen(home: string): Seen | undefined {
  try {
    return JSON.parse(readFileSync(fileIn(home), 'utf8')) as Seen
  } catch {
    return undefined
  }
}
