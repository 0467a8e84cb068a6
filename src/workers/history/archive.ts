import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

import type { Clock } from '../../base/clock.ts'
import { createFileOnce, ensureFolder } from '../../base/files.ts'
import type { Randomness } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { jsonText } from '../../base/visible.ts'
import type { Recorded } from '../../runs/retention.ts'
import { findStoreIdentity } from '../../store/identity.ts'
import type { Store } from '../../store/store.ts'

const packed = promisify(gzip)

export interface ArchiveOptions {
  readonly folder: string
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
}

/**
 * Where rows go before they are forgotten: files of JSON lines, packed. A file is there whole, with its data and its name on disk,
 * or it is not there; only then are its rows removed. Killed in between, the same rows are written again, into another file.
 * Known secrets are hidden in it as everywhere that text leaves us.
 */
export class Archive {
  readonly #options: ArchiveOptions
  #lines: string[] = []
  #bytes = 0

  constructor(options: ArchiveOptions) {
    this.#options = options
  }

  add(rows: readonly Recorded[]): void {
    for (const { table, record } of rows) {
      const line = jsonText({ table, row: record })
      this.#lines.push(line)
      this.#bytes += line.length
    }
  }

  get isFull(): boolean {
    return this.#bytes >= LIMITS.archiveBytes
  }

  /** Puts what was added on disk. */
  async close(): Promise<void> {
    if (this.#lines.length === 0) return
    const { folder, store, clock, random } = this.#options
    const at = new Date(clock.now()).toISOString()
    const header = jsonText({ archive: 'holdfast', version: 1, at, store: (await store.read(findStoreIdentity))?.id })
    const name = `${at.replaceAll(/[-:]/g, '').replace(/\..*/, 'Z')}-${random.hex(8)}.jsonl.gz`
    await ensureFolder(folder)
    await createFileOnce(join(folder, name), await packed(`${[header, ...this.#lines].join('\n')}\n`))
    this.#lines = []
    this.#bytes = 0
  }
}
