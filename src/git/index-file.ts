import { copyFile, stat, utimes } from 'node:fs/promises'

/**
 * A copy of an index, as old as the original. Git takes a file for unchanged if its size and its second are those that it noted, unless it noted
 * them in the second in which the index itself was written: then it reads the file. In a copy that seems younger an edit of the same
 * size within that second would go unseen, and be lost.
 */
export async function copyIndexFile(from: string, to: string): Promise<void> {
  // First its time: if somebody replaces it meanwhile, the copy is older than it is, and more files are read.
  const second = Math.floor((await stat(from)).mtimeMs / 1_000)
  await copyFile(from, to)
  await utimes(to, second, second)
}
