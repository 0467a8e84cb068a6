import { net } from './node-parts.ts'

// What may wait in memory for a reader that is not waited for any more.
const UNWAITED_BYTES = 1024 * 1024

/** Passes output on to a reader in the worker. It holds the command back while the reader is slow, and only then. */
export interface LiveFeed {
  /** Undefined when there is nothing to wait for. */
  write(chunk: Uint8Array): Promise<void> | undefined
  /** From now on nobody waits for the reader: the command is being stopped, or over. */
  stopWaiting(): void
  /** Resolves when the reader has everything, or is gone. */
  finish(): Promise<void>
  /** Resolves when there is no reader any more: it died, or everything was passed on. */
  readonly gone: Promise<void>
}

export const noFeed: LiveFeed = {
  write: () => undefined,
  stopWaiting: () => {},
  finish: () => Promise.resolve(),
  gone: new Promise(() => {}),
}

export function feedTo(fd: number): LiveFeed {
  const socket = new (net().Socket)({ fd, readable: true, writable: true })
  const gone = Promise.withResolvers<void>()
  const unwaited = Promise.withResolvers<void>()
  let waiting = true
  socket.on('error', () => socket.destroy())
  socket.on('close', () => gone.resolve())
  socket.resume()
  return {
    write(chunk) {
      if (socket.destroyed || (!waiting && socket.writableLength > UNWAITED_BYTES)) return undefined
      // A copy, because the reading buffer is used again as soon as nobody waits.
      const written = new Promise<void>((resolve) => socket.write(Buffer.from(chunk), () => resolve()))
      return waiting ? Promise.race([written, gone.promise, unwaited.promise]) : undefined
    },
    stopWaiting() {
      waiting = false
      unwaited.resolve()
    },
    finish() {
      const flushed = new Promise<void>((resolve) => socket.end(() => resolve()))
      return Promise.race([flushed, gone.promise])
    },
    gone: gone.promise,
  }
}
