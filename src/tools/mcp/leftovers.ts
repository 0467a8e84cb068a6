import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureFolder, writeFileAtomic } from '../../base/files.ts'
import { removeRemains } from '../../processes/attempt-folder.ts'
import { judgeProcess, processIdentity } from '../../processes/identity.ts'
import type { ProcessIdentity } from '../../processes/identity.ts'
import { takeOver } from '../../processes/take-over.ts'
import type { Opening } from './client.ts'

/*
 * A server's folder says whose it is. Its supervisor ends it with that process; when both were killed, whoever comes
 * next finds the folder and ends what is left.
 */

const OWNER = 'worker.json'

export async function newServerFolder({ folder: parent, random }: Opening): Promise<{ folder: string; mark: string }> {
  const mark = random.hex(16)
  const folder = join(parent, mark)
  await ensureFolder(folder)
  await writeFileAtomic(join(folder, OWNER), JSON.stringify(processIdentity()), { durable: false })
  return { folder, mark }
}

/** Ends the servers of processes that are gone. Says how many there were. */
export async function endLeftovers(parent: string): Promise<number> {
  let found = 0
  for (const mark of await readdir(parent).catch(() => [])) {
    const folder = join(parent, mark)
    const owner = await readOwner(folder)
    if (owner === undefined || judgeProcess(owner) !== 'dead') continue
    const remains = await takeOver(folder, 'nobody', { mark })
    if (remains.kind === 'alive') {
      remains.command.stop('lease-lost')
      await remains.command.ended
    }
    await removeRemains(folder)
    found += 1
  }
  return found
}

/** One that cannot be read was not finished by its owner, who is then at work on it; or it is gone by now. */
async function readOwner(folder: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, OWNER), 'utf8')) as ProcessIdentity
  } catch {
    return undefined
  }
}
