import { accessSync, constants } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY_DISK = '/dev/shm'

/** Where the folders of the surfaces are: in memory, where the machine has such a place. Nothing here is about disks. */
export function memoryPlace(): string {
  if (process.env['TMPDIR'] !== undefined) return tmpdir()
  try {
    accessSync(MEMORY_DISK, constants.W_OK)
    return MEMORY_DISK
  } catch {
    return tmpdir()
  }
}
