import type { Client, Pool } from 'pg'

import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import { Gathering } from '../gathering.ts'
import type { ChangeListener } from '../store.ts'

export interface WakePorts {
  readonly pool: Pool
  readonly clock: Clock
  /** One channel a schema. */
  readonly channel: string
  /** Tells this process's own notices from others'. */
  readonly self: string
  /** A connection of its own to listen on; undefined where a pooler makes that impossible. */
  readonly connect: (() => Promise<Client>) | undefined
}

/**
 * How machines notice each other's commits: NOTIFY after a commit, gathered, and LISTEN on a connection of its own. It is
 * a hint: while nobody can be heard, listeners look by themselves.
 */
export class Wake {
  readonly #ports: WakePorts
  readonly #listeners = new Set<ChangeListener>()
  readonly #gathering: Gathering
  #ear: Client | undefined
  #connecting = false
  #hearing = false
  #checkedAt = 0
  #stopLooking: (() => void) | undefined
  #closed = false

  constructor(ports: WakePorts) {
    this.#ports = ports
    this.#gathering = new Gathering(ports.clock, () => void this.#notify())
  }

  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#stop()
    }
  }

  announce(topics: ReadonlySet<string>): void {
    this.#tell(topics)
    if (!this.#closed) this.#gathering.add(topics)
  }

  /** The last commit of a short-lived process is announced before it ends. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#gathering.take()) await this.#notify()
    this.#stop()
  }

  async #notify(): Promise<void> {
    // Whoever does not hear it looks later. Not synced: it is a transaction too, and commits that matter would wait behind it.
    const { pool, channel, self } = this.#ports
    await pool
      .query(`select set_config('synchronous_commit', 'off', true), pg_notify('${channel}', '${self}')`)
      .catch(() => {})
  }

  #start(): void {
    this.#look()
    void this.#hear()
  }

  #stop(): void {
    this.#stopLooking?.()
    this.#stopLooking = undefined
    this.#hearing = false
    const ear = this.#ear
    this.#ear = undefined
    void ear?.end().catch(() => {})
  }

  /** Called again whenever the connection breaks; what was missed meanwhile is found by looking. */
  async #hear(): Promise<void> {
    const { connect, channel } = this.#ports
    // One that is slow to connect is waited for: a second one beside it would be forgotten, and keep the process alive.
    if (connect === undefined || this.#ear !== undefined || this.#connecting) return
    this.#connecting = true
    try {
      const ear = await connect().finally(() => (this.#connecting = false))
      if (this.#listeners.size === 0 || this.#closed) return await ear.end()
      this.#ear = ear
      // What this process has committed it has been told of already.
      ear.on('notification', ({ payload }) => payload !== this.#ports.self && this.#tell())
      ear.on('error', () => this.#deaf(ear))
      ear.on('end', () => this.#deaf(ear))
      await ear.query(`listen ${channel}`)
      // Closed, or given up, while the server answered.
      if (this.#ear !== ear) return
      this.#hearing = true
      this.#checkedAt = this.#ports.clock.monotonicMs()
      this.#tell()
    } catch {
      this.#deaf(this.#ear)
    }
  }

  #deaf(ear: Client | undefined): void {
    if (ear !== this.#ear) return
    this.#ear = undefined
    this.#hearing = false
    void ear?.end().catch(() => {})
  }

  /** One that has silently died would be believed for hours; an answer that does not come in time says so now. */
  async #check(ear: Client): Promise<void> {
    const { clock } = this.#ports
    if (clock.monotonicMs() - this.#checkedAt < LIMITS.earCheckMs) return
    this.#checkedAt = clock.monotonicMs()
    const stopWaiting = clock.after(LIMITS.connectMs, () => this.#deaf(ear))
    await ear.query('select 1').catch(() => this.#deaf(ear))
    stopWaiting()
  }

  #look(): void {
    this.#stopLooking = this.#ports.clock.after(LIMITS.changePollMs, () => {
      if (!this.#hearing) {
        this.#tell()
        void this.#hear()
      } else if (this.#ear !== undefined) void this.#check(this.#ear)
      if (this.#listeners.size > 0) this.#look()
    })
  }

  #tell(topics?: ReadonlySet<string>): void {
    if (this.#closed) return
    for (const listener of this.#listeners) listener(topics)
  }
}
