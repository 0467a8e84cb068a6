import type { Change } from './transition.ts'

/** Where durable facts live. Two engines, one semantics. */
export interface Store {
  readonly engine: 'sqlite' | 'postgres'
  /**
   * Performs a change as one transaction and resolves only when it is on disk. Takes the function and its plain
   * arguments, not a started generator, because it may have to start it again.
   */
  apply<Args extends readonly unknown[], T>(change: Change<Args, T>, ...args: Args): Promise<T>
  /** Reads from one consistent snapshot; a statement that writes is refused. */
  read<Args extends readonly unknown[], T>(look: Change<Args, T>, ...args: Args): Promise<T>
  /** Calls back soon after something was committed, by this process or another. A hint: it may come late or twice. */
  onChange(listener: ChangeListener): () => void
  /** Somebody will commit again and again: what each of the first commits would pay for is made ready before anybody waits for one. */
  warmUp(): Promise<void>
  /** Looks for damage; what it finds, in the engine's words. Takes a while on a large database. */
  check(): Promise<string[]>
  /** Writes a consistent copy of everything to a new file, while others go on; refused where the engine has its own tool. */
  copyTo(path: string): Promise<void>
  close(): Promise<void>
}

/** `topics`: what the commits of this process were about, by their events; undefined: others', which may be about anything. */
export type ChangeListener = (topics?: ReadonlySet<string>) => void

/** A place where a test may stop, fail, delay or kill. Production opens stores without one. */
export interface StoreProbe {
  (point: StorePoint): void
}

export interface StorePoint {
  readonly at: 'begin' | 'statement' | 'commit'
  readonly when: 'before' | 'after'
  /** The statement's text, for `statement`. */
  readonly text?: string
}

/** One that may also hold a transition at a point. SQLite runs a batch without a pause, so only PostgreSQL takes it. */
export type HoldingProbe = (point: StorePoint) => void | Promise<void>
