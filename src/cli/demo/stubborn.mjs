// A program that does not want to end: it ignores TERM, and leaves a second one of its kind behind in a new session.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

process.on('SIGTERM', () => {})
if (process.argv[2] !== 'left-behind') {
  spawn(process.execPath, [fileURLToPath(import.meta.url), 'left-behind'], { detached: true, stdio: 'ignore' })
}
setInterval(() => {}, 60_000)
