import { closeSync, openSync, statSync, ftruncateSync } from 'node:fs'

/** More than a database of the tests has. In the blocks of 512 bytes in which a shell counts. */
const BLOCKS = 131_072

export interface FullFile {
  /** For a shell: what follows may write only so much into it, as on a disk that is filling up. */
  readonly limit: string
  /** What of it was written. */
  written(): number
}

/** A file with little room left: most of it is a hole, and the limit is of files, so nothing is really filled. */
export function fullFile(path: string, room: number): FullFile {
  const hole = BLOCKS * 512 - room
  const file = openSync(path, 'w')
  ftruncateSync(file, hole)
  closeSync(file)
  return { limit: `ulimit -f ${BLOCKS}`, written: () => statSync(path).size - hole }
}
