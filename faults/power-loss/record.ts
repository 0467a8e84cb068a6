import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { Before } from './disk.ts'
import { LANDINGS } from './landings.ts'
import { makeRepository } from './repository.ts'
import { readTrace, TRACED } from './trace.ts'
import type { Happened } from './trace.ts'

const LIFE = fileURLToPath(new URL('life.ts', import.meta.url))
/** Longer than any of them takes on a machine with nothing to spare. */
const LIFE_MS = 180_000

/** Where backups go: a folder of the user's, there and on disk before anything happens. */
const COPIES = 'copies'

export interface Recorded {
  readonly before: Before
  readonly happened: readonly Happened[]
}

/** Whether what a program does to its disk can be seen here. */
export function canTrace(): boolean {
  return (
    spawnSync('strace', ['-f', '--seccomp-bpf', '-qq', '-e', 'trace=fsync', 'true'], { stdio: 'ignore' }).status === 0
  )
}

/** Lets the life happen below the root, and tells what it did to the disk. */
export async function record(kind: string, seed: number, root: string): Promise<Recorded> {
  mkdirSync(join(root, COPIES), { recursive: true })
  if (kind in LANDINGS) makeRepository(root)
  const before = whatIsIn(root)
  const trace = `${root}.trace`
  // Names of handles (-y), bytes as they are (-xx) and all of them (-s), of every process that is started (-f).
  const args = ['-f', '--seccomp-bpf', '-qq', '-y', '-xx', '-s', '16777216', '-e', 'signal=none', '-o', trace]
  const env = { ...process.env, UV_USE_IO_URING: '0' }
  const traced = spawn('strace', [...args, '-e', `trace=${TRACED}`, process.execPath, LIFE, kind, String(seed), root], {
    env,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIFE_MS,
    killSignal: 'SIGKILL',
  })
  let stderr = ''
  traced.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  traced.stdout.resume()
  const [code] = (await once(traced, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the life "${kind}" of seed ${seed} did not come to its end: ${stderr.slice(-2_000)}`)
  return { before, happened: await readTrace(trace, root) }
}

function whatIsIn(root: string): Before {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).map((entry) => {
    const place = join(entry.parentPath, entry.name)
    return { isFolder: entry.isDirectory(), place, path: relative(root, place) }
  })
  const paths = (isFolder: boolean) => entries.filter((entry) => entry.isFolder === isFolder)
  return {
    // Each after the one that it is in.
    folders: paths(true)
      .map(({ path }) => path)
      .toSorted(),
    files: new Map(
      paths(false).map(({ path, place }) => [
        path,
        { content: readFileSync(place), executable: (statSync(place).mode & 0o100) !== 0 },
      ]),
    ),
  }
}
