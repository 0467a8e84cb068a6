import { sleep } from '../../base/clock.ts'
import type { Clock, Instant } from '../../base/clock.ts'
import { HoldfastError } from '../../base/errors.ts'
import type { Randomness } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { integer, row } from '../row.ts'
import { sql } from '../sql.ts'
import { Rounds } from '../rounds.ts'
import type { AnyChange } from '../rounds.ts'
import { begun, first, run } from '../transition.ts'
import type { Change, Query } from '../transition.ts'
import { Unlikely } from './connection.ts'
import type { Connection } from './connection.ts'
import { explain, isBusy, isFull } from './errors.ts'
import { WriteBack } from './write-back.ts'

/**
 * Transitions that arrive together share one commit, so one sync pays for all of them:
 *
 *   waiting ─▶ begin ─▶ side by side ─▶ the writer's batch number ─▶ commit ─▶ acknowledged
 *
 * Side by side, so that statements of the same kind become one (../rounds.ts): half of their cost. When one of them throws, the batch is rolled back and run again with each in its own savepoint, so that it fails
 * alone; exceptions are rare, and this way the others do not pay for a savepoint (a quarter of their cost, measured by
 * bench/store). An error that ended the whole transaction means that none of the batch happened: its members run again
 * one by one. An error from `commit` itself leaves open whether it happened; then the connection is opened anew and the
 * batch number, which is part of the same commit, says.
 */
interface Member {
  readonly change: AnyChange
  readonly args: readonly unknown[]
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  /** What it returned; told when the commit has. */
  value: unknown
  /** It was rolled back alone, for this. */
  failure: { readonly error: unknown } | undefined
}

/** How carefully a batch is run; each failure goes one further. */
type Mode = 'plain' | 'savepoints' | 'one by one'

type Performed =
  | { readonly kind: 'committed' }
  /** No row changed: nothing to sync, nobody to wake. */
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'undone'; readonly error: unknown; readonly next?: Mode }
  /** The commit was asked for and failed. */
  | { readonly kind: 'unknown'; readonly error: unknown; readonly batch: number; readonly settle: () => void }

const batchRow = row({ batch: integer })

export interface GroupCommitOptions {
  readonly path: string
  readonly clock: Clock
  readonly random: Randomness
  readonly open: () => Connection
  readonly onCommit: (topics: ReadonlySet<string>) => void
}

export class GroupCommit {
  readonly #options: GroupCommitOptions
  #connection: Connection | undefined
  readonly #waiting: Member[] = []
  #flushing: Promise<void> | undefined
  #batch = 0
  #named: string | undefined
  #closed = false
  readonly #writeBack: WriteBack

  constructor(connection: Connection, options: GroupCommitOptions) {
    this.#connection = connection
    this.#options = options
    this.#writeBack = new WriteBack(options.clock, () => this.#writeLogBack())
  }

  /** Whoever only reads needs no name, and leaves no row. */
  get #writer(): string {
    return (this.#named ??= this.#options.random.hex(16))
  }

  submit<Args extends readonly unknown[], T>(change: Change<Args, T>, args: Args): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(closedError())
      const told = resolve as (value: unknown) => void
      const asked = change as unknown as AnyChange
      this.#waiting.push({ change: asked, args, resolve: told, reject, value: undefined, failure: undefined })
      this.#flushing ??= this.#flush()
    })
  }

  /** For reads: whatever is acknowledged is visible to it. */
  connection(): Connection {
    if (this.#closed) throw closedError()
    this.#connection ??= this.#options.open()
    return this.#connection
  }

  /** Finishes what was submitted, takes nothing new. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#flushing
    this.#writeBack.close()
    const connection = this.#connection
    this.#connection = undefined
    try {
      if (this.#named !== undefined)
        connection?.execute(run(sql`delete from writers where id = ${this.#writer}`), connection.instant())
    } catch {
      // The row is litter that a later start sweeps; closing must not fail for it.
    }
    connection?.close()
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Callers that were just answered submit their next transition before this turn of the event loop ends.
      await new Promise((resolve) => setImmediate(resolve))
      const members = this.#waiting.splice(0, LIMITS.batchMembers)
      await this.#commit(members, 'plain').catch((error: unknown) => rejectAll(members, error))
    }
    this.#flushing = undefined
  }

  async #commit(members: Member[], mode: Mode): Promise<void> {
    const connection = await this.#begin().catch((error: unknown) =>
      rejectAll(members, explain(error, this.#options.path)),
    )
    if (connection === undefined) return
    let performed = this.#perform(connection, members, mode)
    if (performed.kind === 'unknown') performed = this.#lookUp(performed)
    if (performed.kind === 'unchanged') return
    if (performed.kind === 'committed') return this.#options.onCommit(connection.takeTopics())
    if (performed.kind === 'unknown') return rejectAll(members, unknownCommit(performed.error, this.#options.path))
    if (performed.next === undefined || mode === 'one by one') {
      return rejectAll(members, explain(performed.error, this.#options.path))
    }
    if (performed.next === 'savepoints') return this.#commit(members, 'savepoints')
    for (const member of members) await this.#commit([member], 'one by one')
  }

  /** Waits for the write lock: a few milliseconds inside SQLite, then asynchronously, so that the process goes on. */
  async #begin(): Promise<Connection> {
    const { clock, random } = this.#options
    const deadline = clock.monotonicMs() + LIMITS.lockWaitMs
    for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
      const connection = (this.#connection ??= this.#options.open())
      try {
        connection.begin()
        return connection
      } catch (error) {
        connection.rollback()
        if (!isBusy(error) || clock.monotonicMs() > deadline) throw error
        await sleep(clock, wait * (0.5 + random.fraction()))
      }
    }
  }

  /** Runs the members and commits. What does not fit into the time of one batch goes back to the head of the queue. */
  #perform(connection: Connection, members: Member[], mode: Mode): Performed {
    let done = 0
    const until = this.#options.clock.monotonicMs() + LIMITS.batchMs
    const changesBefore = connection.changes()
    let changed = true
    try {
      while (done < members.length) {
        done = this.#run(connection, members, done, mode)
        if (this.#options.clock.monotonicMs() > until) break
      }
      changed = connection.changes() !== changesBefore
      if (changed) this.#markBatch(connection, ++this.#batch)
    } catch (error) {
      const lost = !connection.inTransaction
      connection.rollback()
      if (members.length === 1 && !(error instanceof Unlikely)) return { kind: 'undone', error }
      return { kind: 'undone', error, next: lost || mode === 'savepoints' ? 'one by one' : 'savepoints' }
    }
    if (done < members.length) this.#waiting.unshift(...members.splice(done))
    const settle = () => members.forEach(tell)
    if (!changed) {
      connection.rollback()
      settle()
      return { kind: 'unchanged' }
    }
    try {
      connection.commit()
    } catch (error) {
      return { kind: 'unknown', error, batch: this.#batch, settle }
    }
    this.#writeBack.committed(connection.changes() - changesBefore)
    settle()
    return { kind: 'committed' }
  }

  /** One of them, or the next few; returns how many are done then. */
  #run(connection: Connection, members: readonly Member[], from: number, mode: Mode): number {
    if (mode === 'plain' && !connection.isProbed) return runSideBySide(connection, members, from)
    if (mode === 'savepoints') this.#runInSavepoint(connection, members[from]!)
    else runMember(connection, members[from]!)
    return from + 1
  }

  #runInSavepoint(connection: Connection, member: Member): void {
    connection.exec('savepoint member')
    try {
      runMember(connection, member)
      connection.exec('release member')
    } catch (error) {
      if (!connection.inTransaction) throw error
      connection.exec('rollback to member')
      connection.exec('release member')
      member.failure = { error: explain(error, this.#options.path) }
    }
  }

  #markBatch(connection: Connection, batch: number): void {
    const at = connection.instant()
    connection.mark(this.#writer, batch, at)
    if (batch === 1) connection.execute(run(sql`delete from writers where used_at < ${at - LIMITS.writersKeptMs}`), at)
  }

  /**
   * After a failed commit this connection's memory proves nothing. A fresh one reads what the file says, and only once
   * it could write the log back into the database, synced, is that a durable answer.
   */
  #lookUp(failed: Extract<Performed, { kind: 'unknown' }>): Performed {
    try {
      this.#disconnect()
      const connection = (this.#connection = this.#options.open())
      const found = connection.look(
        first(batchRow, sql`select batch from writers where id = ${this.#writer}`),
        connection.instant(),
      )
      if (found?.batch !== failed.batch) {
        if (!isFull(failed.error)) this.#seal(connection, failed.batch)
        return { kind: 'undone', error: failed.error, next: 'one by one' }
      }
      if (!connection.checkpoint()) return failed
      failed.settle()
      return { kind: 'committed' }
    } catch {
      // Half a seal would keep the write lock from everybody.
      this.#disconnect()
      return failed
    }
  }

  /** Nobody waits for it: what fails now fails again within a commit, if it has to. */
  #writeLogBack(): void {
    try {
      if (this.#flushing === undefined) this.#connection?.writeBack()
    } catch {
      // As SQLite itself has it, where it writes back after a commit.
    }
  }

  #disconnect(): void {
    this.#connection?.close()
    this.#connection = undefined
  }

  /** The batch is not there now; a later commit of ours makes sure that no recovery of the log brings it back. */
  #seal(connection: Connection, batch: number): void {
    connection.begin()
    this.#markBatch(connection, -batch)
    connection.commit()
  }
}

const tell = ({ resolve, reject, value, failure }: Member): void =>
  failure === undefined ? resolve(value) : reject(failure.error)

export function drive<T>(
  transition: Generator<Query<unknown>, T, unknown>,
  execute: (query: Query<unknown>) => unknown,
): T {
  let step = transition.next()
  while (step.done !== true) step = transition.next(execute(step.value))
  return step.value
}

function runMember(connection: Connection, member: Member): void {
  const at = connection.instant()
  member.failure = undefined
  member.value = drive(begun(member.change, member.args), (query) => connection.execute(query, at))
}

/** As many of them as begin with a number of statements: what a batch may take is looked at after each few. */
function runSideBySide(connection: Connection, members: readonly Member[], from: number): number {
  const at = connection.instant()
  const rounds = new Rounds(true)
  let next = from
  for (let statements = 0; next < members.length && statements < LIMITS.sideBySide; next += 1) {
    const { change, args } = members[next]!
    statements += rounds.add(change, args)
  }
  for (let asked = rounds.next(); asked !== undefined; asked = rounds.next()) {
    executeAhead(connection, rounds, at)
    rounds.answer(connection.executeTogether(asked, at))
  }
  executeAhead(connection, rounds, at)
  connection.executeLikely(rounds.deferred, at)
  connection.tell(rounds.topics)
  rounds.values().forEach((value, place) => (members[from + place]!.value = value))
  return next
}

/** First what returns something, which the others look at. */
function executeAhead(connection: Connection, rounds: Rounds, at: Instant): void {
  const { telling, silent } = rounds.takeAhead()
  if (telling.length > 0) rounds.hear(telling, connection.executeTelling(telling, at))
  connection.executeLikely(silent, at)
}

function rejectAll(members: readonly Member[], error: unknown): void {
  for (const member of members) member.reject(error)
}

function unknownCommit(cause: unknown, path: string): HoldfastError {
  const explained = explain(cause, path)
  const why = explained instanceof Error ? explained.message : String(explained)
  return new HoldfastError(
    'store/unknown-commit',
    `it is not known whether the last change reached the disk (${why})`,
    {
      remedy: 'make sure the disk works, then look the change up before doing it again',
      cause,
    },
  )
}

function closedError(): HoldfastError {
  return new HoldfastError('store/closed', 'this store was closed', { remedy: 'open it again' })
}
