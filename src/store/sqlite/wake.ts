import { closeSync, openSync, utimesSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'

import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import { Gathering } from '../gathering.ts'
import type { ChangeListener } from '../store.ts'

/**
 * How processes that share a database file notice each other's commits: whoever commits touches a file beside the
 * database, whoever listens watches it. A lost notification costs at most one `changePollMs`, never correctness.
 */
export class Wake {
  readonly #path: string | undefined
  readonly #clock: Clock
  readonly #listeners = new Set<ChangeListener>()
  #watcher: FSWatcher | undefined
  #stopPolling: (() => void) | undefined
  readonly #gathering: Gathering
  readonly #version: () => unknown
  #seen: unknown

  /** `version` changes whenever another process committed (SQLite's data_version). No path: nobody to wake. */
  constructor(path: string | undefined, clock: Clock, version: () => unknown) {
    this.#path = path
    this.#clock = clock
    this.#version = version
    this.#gathering = new Gathering(clock, () => this.#touch())
  }

  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** This process committed: its own listeners hear at once, the others through the file. */
  announce(topics: ReadonlySet<string>): void {
    this.#tell(topics)
    if (this.#path !== undefined) this.#gathering.add(topics)
  }

  /** The last commit of a short-lived process is announced before it exits. */
  flush(): void {
    if (this.#gathering.take()) this.#touch()
  }

  #touch(): void {
    try {
      const at = this.#clock.now() / 1_000
      utimesSync(this.#path!, at, at)
    } catch {
      // Not there yet, or not ours: the listeners' own look at the database finds the commit.
    }
  }

  close(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#stopPolling?.()
    this.#stopPolling = undefined
  }

  #start(): void {
    this.#poll()
    if (this.#path === undefined) return
    try {
      closeSync(openSync(this.#path, 'a', 0o600))
      this.#watcher = watch(this.#path, { persistent: false }, () => this.#hear())
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // No notifications on this file system: polling remains.
    }
  }

  #poll(): void {
    this.#stopPolling = this.#clock.after(LIMITS.changePollMs, () => {
      this.#hear()
      if (this.#listeners.size > 0) this.#poll()
    })
  }

  /** Our own touch is heard here too; the version changes with the commits of others alone. */
  #hear(): void {
    const version = this.#look()
    if (version !== this.#seen) this.#tell()
    this.#seen = version
  }

  /** A database that cannot be asked now (closing, a sick disk) is asked again next time; a timer has no caller to tell. */
  #look(): unknown {
    try {
      return this.#version()
    } catch {
      return this.#seen
    }
  }

  #tell(topics?: ReadonlySet<string>): void {
    for (const listener of this.#listeners) listener(topics)
  }
}
