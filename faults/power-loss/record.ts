import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { readTrace, TRACED } from './trace.ts'
import type { Happened } from './trace.ts'

const LIFE = fileURLToPath(new URL('life.ts', import.meta.url))
/** Longer than any of them takes on a machine with nothing to spare. */
const LIFE_MS = 180_000

/** Where backups go: a folder of the user's, there and on disk before anything happens. */
export const FOLDERS_BEFORE = ['copies']

/** Whether what a program does to its disk can be seen here. */
export function canTrace(): boolean {
  return (
    spawnSync('strace', ['-f', '--seccomp-bpf', '-qq', '-e', 'trace=fsync', 'true'], { stdio: 'ignore' }).status === 0
  )
}

/** Lets the life happen below the root, and tells what it did to the disk. */
export async function record(kind: string, seed: number, root: string): Promise<readonly Happened[]> {
  for (const folder of FOLDERS_BEFORE) mkdirSync(`${root}/${folder}`, { recursive: true })
  const trace = `${root}.trace`
  // Names of handles (-y), bytes as they are (-xx) and all of them (-s), of every process that is started (-f).
  const args = ['-f', '--seccomp-bpf', '-qq', '-y', '-xx', '-s', '16777216', '-e', 'signal=none', '-o', trace]
  const env = { ...process.env, UV_USE_IO_URING: '0' }
  const traced = spawn('strace', [...args, '-e', `trace=${TRACED}`, process.execPath, LIFE, kind, String(seed), root], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIFE_MS,
    killSignal: 'SIGKILL',
  })
  let stderr = ''
  traced.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  traced.stdout.resume()
  const [code] = (await once(traced, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the life "${kind}" of seed ${seed} did not come to its end: ${stderr.slice(-2_000)}`)
  return readTrace(trace, root)
}
