import { fstatSync, fsyncSync } from 'node:fs'

const STANDARD_OUTPUT = 1

/**
 * Resolves when the text has left this process: in the pipe, at the terminal, or on the disk. Rejects if it has not, or only in
 * part (bin/whole-output.cjs sees to that).
 */
export async function flushed(text: string): Promise<void> {
  const { stdout } = process
  // Kept: what a stream says after it broke, it says again as an event, and nobody would hear it.
  stdout.on('error', () => {})
  if (text !== '') {
    await new Promise<void>((resolve, reject) => {
      stdout.write(text, (error) => (error == null ? resolve() : reject(error)))
    })
  }
  if (fstatSync(STANDARD_OUTPUT).isFile()) fsyncSync(STANDARD_OUTPUT)
}
