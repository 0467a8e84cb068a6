import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import type { Clock } from '../../src/base/clock.ts'
import type { Store, StoreProbe } from '../../src/store/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'

export interface OpenOptions {
  readonly clock?: Clock
  readonly probe?: StoreProbe
}

/** One database of a test, gone when the test is; each `open` is another process as far as the engine can tell. */
export interface TestDatabase {
  /** What HOLDFAST_STORE would say. */
  readonly url: string
  open(options?: OpenOptions): Promise<Store>
  /** Another database with the same content. Nobody may have this one open. */
  copy(): Promise<TestDatabase>
  /** Where an engine allows it: what `kill -9` of everybody who uses it would leave at this instant. */
  killed?(): TestDatabase
}

export interface TestEngine {
  readonly name: 'sqlite' | 'postgres'
  database(): Promise<TestDatabase>
}

const sqlite: TestEngine = {
  name: 'sqlite',
  async database() {
    return sqliteIn(temporaryFolder())
  },
}

function sqliteIn(folder: string): TestDatabase {
  const path = join(folder, 'holdfast.db')
  const killed = () => {
    const copy = temporaryFolder()
    // Not the `-shm` file: it is memory, and gone with its processes.
    for (const name of ['holdfast.db', 'holdfast.db-wal']) {
      if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name))
    }
    return sqliteIn(copy)
  }
  return {
    url: `sqlite:${path}`,
    open: (options = {}) => closedAfterTest(openSqliteStore({ path, ...options })),
    copy: async () => killed(),
    killed,
  }
}

export const engines: readonly TestEngine[] = [sqlite]

/** A folder that is removed when the test has finished, after everything that was opened in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function closedAfterTest(opening: Promise<Store>): Promise<Store> {
  const store = await opening
  onTestFinished(() => store.close())
  return store
}
