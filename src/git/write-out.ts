import { LIMITS } from '../base/limits.ts'
import { runCaptured } from '../processes/captured-command.ts'
import type { Git } from './git.ts'

/**
 * Writes out everything of the file system that has this folder, by one command: Node.js has no call for it, and to sync fifty thousand files one by
 * one takes minutes. False where nobody can say that it was done: a `sync` that does not wait, as on macOS, says nothing.
 */
export async function writeOut({ clock, env }: Git, folder: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  const plain = { PATH: env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' }
  const options = { clock, cwd: '/', env: plain, timeoutMs: LIMITS.writeOutMs, maxBytes: 4_096 }
  const end = await runCaptured(['sync', '-f', folder], options)
  // One that knows of no file systems says so, and writes out all of them; but it does not tell of errors.
  const isStranger = end.cut === undefined && end.code !== 0 && /option/.test(end.stderr)
  return (isStranger ? await runCaptured(['sync'], options) : end).code === 0
}
