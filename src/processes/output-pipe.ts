import { closeSync, constants, openSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { StreamName } from './command.ts'
import { childProcess, net } from './node-parts.ts'

const READ_BYTES = 64 * 1024

/** Both ends of a pipe. */
export interface OutputPipe {
  readonly readFd: number
  readonly writeFd: number
}

export type OutputPipes = Readonly<Record<StreamName, OutputPipe>> & {
  /** For a command that reads what is in no file. */
  readonly stdin: OutputPipe | undefined
}

/**
 * Real pipes. The runtime's own "pipe" is a socket, and a command cannot open /dev/stdout or /dev/stderr on a socket:
 * `echo oops > /dev/stderr` fails there. The runtime has no pipe(2), so a named pipe is made, opened and unlinked.
 */
export async function openOutputPipes(folder: string, withInput: boolean): Promise<OutputPipes> {
  return openPipesIn(folder, withInput).catch(() => openPipesElsewhere(withInput))
}

/** Some network and removable disks cannot hold a named pipe. */
async function openPipesElsewhere(withInput: boolean): Promise<OutputPipes> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-'))
  try {
    return await openPipesIn(folder, withInput)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function openPipesIn(folder: string, withInput: boolean): Promise<OutputPipes> {
  const names = ['stdout', 'stderr', ...(withInput ? ['stdin'] : [])]
  const paths = names.map((name) => join(folder, `${name}-${process.pid}.pipe`)) as [string, string, string?]
  try {
    await promisify(childProcess().execFile)('mkfifo', ['-m', '600', ...(paths as string[])])
    const stdin = paths[2] === undefined ? undefined : openForReader(paths[2])
    return { stdout: openBothEnds(paths[0]), stderr: openBothEnds(paths[1]), stdin }
  } finally {
    await Promise.all((paths as string[]).map((path) => rm(path, { force: true })))
  }
}

function openBothEnds(path: string): OutputPipe {
  // The reader first and without waiting: each end would otherwise wait for the other.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return { readFd, writeFd: openSync(path, constants.O_WRONLY) }
}

/** The other way round: the command must wait at its end, and we must not at ours. */
function openForReader(path: string): OutputPipe {
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writeFd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const readFd = openSync(path, constants.O_RDONLY)
  closeSync(first)
  return { readFd, writeFd }
}

/** Writes all of it, for a command that may read it slowly, or not at all. */
export function feedInput(writeFd: number, text: string): void {
  const socket = new (net().Socket)({ fd: writeFd, readable: false, writable: true })
  // It ended, or closed its input: what it has not read it did not want.
  socket.on('error', () => socket.destroy())
  socket.end(text)
}

export interface Draining {
  /** Every writer has closed the pipe and everything is dealt with. */
  readonly closed: Promise<void>
  /** Gives up on a pipe that a stranger keeps open. */
  abandon(): void
}

/**
 * Reads the pipe with one buffer and no copies, so that a gigabyte of output needs no memory. While `take` is busy
 * with a chunk nothing more is read, and the command feels that as a full pipe.
 */
export function drain(readFd: number, take: (chunk: Uint8Array) => Promise<unknown> | undefined): Draining {
  let busy: Promise<unknown> | undefined
  const onChunk = (length: number, buffer: Uint8Array): boolean => {
    busy = take(buffer.subarray(0, length))?.finally(() => socket.resume())
    return busy === undefined
  }
  const onread = { buffer: Buffer.alloc(READ_BYTES), callback: onChunk }
  const socket = new (net().Socket)({ fd: readFd, readable: true, writable: false, onread })
  socket.on('error', () => socket.destroy())
  socket.resume()
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return { closed: ended.then(() => busy).then(() => {}), abandon: () => socket.destroy() }
}
