import { open, type FileHandle } from 'node:fs/promises'
import { errorCode } from '../base/files.ts'

// Left free on a disk that our own spilling filled: the end must still fit, and in JSON a byte can take six.
const ROOM_BYTES = 2 * 1024 * 1024

/** The output on disk, from its start up to a limit. A full disk ends the spill, never the command. */
export class Spill {
  readonly #path: string
  readonly #limit: number
  #file: FileHandle | undefined
  #written = 0
  #error: string | undefined

  constructor(path: string, limitBytes: number) {
    this.#path = path
    this.#limit = limitBytes
  }

  get state(): { spilledBytes: number; spillError?: string } {
    return this.#error === undefined
      ? { spilledBytes: this.#written }
      : { spilledBytes: this.#written, spillError: this.#error }
  }

  /** Undefined when there is nothing to wait for. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    const part = chunk.subarray(0, Math.max(this.#limit - this.#written, 0))
    if (part.length === 0 || this.#error !== undefined) return undefined
    return this.#guard(() => this.#append(part).catch((error: unknown) => this.#giveBack(error)))
  }

  /** `durable` when the file holds what is recorded nowhere else. */
  async close({ durable }: { readonly durable: boolean }): Promise<void> {
    const file = this.#file
    if (file === undefined) return
    if (durable) await this.#guard(() => file.sync())
    await this.#guard(() => file.close())
  }

  async #append(part: Uint8Array): Promise<void> {
    this.#file ??= await open(this.#path, 'w', 0o600)
    for (let done = 0; done < part.length;) {
      const { bytesWritten } = await this.#file.write(part, done)
      done += bytesWritten
      this.#written += bytesWritten
    }
  }

  async #giveBack(error: unknown): Promise<never> {
    this.#written = Math.max(this.#written - ROOM_BYTES, 0)
    await this.#file?.truncate(this.#written)
    throw error
  }

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#error ??= errorCode(error) ?? 'EIO'
    }
  }
}
