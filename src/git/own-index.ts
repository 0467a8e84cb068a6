import { mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { errorCode, named } from '../base/files.ts'
import { copyIndexFile } from './index-file.ts'

/**
 * Works on an index under a name of its own, and gives it its place at the end. A process that was killed leaves its git command running for a
 * moment, or a lock beside the index: neither is in the way of the next.
 */
export const onOwnIndex = <T>(
  index: string,
  from: 'empty' | 'as-it-is',
  work: (own: string) => Promise<T>,
): Promise<T> => named(index, () => workOnOwn(index, from, work))

async function workOnOwn<T>(index: string, from: 'empty' | 'as-it-is', work: (own: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(dirname(index), 'index-'))
  try {
    const own = join(folder, 'index')
    if (from === 'as-it-is') await copyIfThere(index, own)
    const done = await work(own)
    await rename(own, index)
    return done
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export async function copyIfThere(from: string, to: string): Promise<void> {
  await copyIndexFile(from, to).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error
  })
}
