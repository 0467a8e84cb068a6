import { readFile, readlink } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { createHash } from 'node:crypto'

import { HoldfastError } from '../../base/errors.ts'
import { createFileOnce, ensureFolder, errorCode, replaceFile } from '../../base/files.ts'

/** A client's settings as they were when we looked. */
export interface SettingsFile {
  /** Where the client looks for it. */
  readonly path: string
  /** Where it is: people keep their settings in a repository, with a link to it. */
  readonly target: string
  /** Undefined: there is none. */
  readonly bytes: Uint8Array | undefined
  readonly text: string
}

/** As many as a kernel follows. */
const MOST_LINKS = 40

export async function readSettingsFile(path: string): Promise<SettingsFile> {
  const target = await followLinks(resolve(path))
  const bytes = await contentOf(target)
  return { path, target, bytes, text: bytes === undefined ? '' : decode(target, bytes) }
}

/** The last link may point at what is not there yet. */
async function followLinks(path: string): Promise<string> {
  let target = path
  for (let links = 0; links <= MOST_LINKS; links++) {
    const next = await linkedFrom(target)
    if (next === undefined) return target
    target = resolve(dirname(target), next)
  }
  throw new HoldfastError('hooks/unreadable', `${path} is a link that leads nowhere`, { remedy: 'mend the link' })
}

async function linkedFrom(path: string): Promise<string | undefined> {
  try {
    return await readlink(path)
  } catch (error) {
    // EINVAL: not a link.
    if (['EINVAL', 'ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return undefined
    throw unreadable(path, error)
  }
}

async function contentOf(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw unreadable(path, error)
  }
}

const unreadable = (path: string, cause: unknown) =>
  new HoldfastError('hooks/unreadable', `${path} cannot be read: ${(cause as Error).message}`, {
    remedy: 'check what it is and who may read it',
    cause,
  })

function decode(path: string, bytes: Uint8Array): string {
  try {
    // The byte order mark stays: what we do not change must be written back as it was.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new HoldfastError('hooks/not-json', `${path} is not text in UTF-8`, {
      remedy: 'mend it first; nothing was changed',
    })
  }
}

/** Puts the new text in the place of what was read; without one, there is no file any more. */
export async function writeSettingsFile(file: SettingsFile, data: string | Uint8Array | undefined): Promise<void> {
  if ((await write(file, data)) === 'done') return
  throw new HoldfastError('hooks/changed-meanwhile', `${file.path} was changed by somebody else; nothing was written`, {
    remedy: 'run the command again to see what it would do now',
  })
}

async function write({ target, bytes }: SettingsFile, data: string | Uint8Array | undefined): Promise<'done' | 'not'> {
  if (bytes !== undefined) return (await replaceFile(target, bytes, data)) === 'replaced' ? 'done' : 'not'
  if (data === undefined) return 'done'
  await ensureFolder(dirname(target))
  return (await createFileOnce(target, data)) === 'created' ? 'done' : 'not'
}

export const digestOf = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')
