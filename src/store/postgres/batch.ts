import type { HoldingProbe } from '../store.ts'
import type { Answer, Change, Query, Transition } from '../transition.ts'
import type { Answered, Lane } from './lane.ts'
import type { Renderer, Request } from './statement.ts'

/** One `apply` that waits for its commit. */
export interface Member {
  readonly start: () => Transition<unknown>
  /** Known to be one statement: it can share a round trip with begin and commit. */
  readonly single: boolean
  resolve(value: unknown): void
  reject(error: unknown): void
}

export function memberFor<Args extends readonly unknown[], T>(
  change: Change<Args, T>,
  args: Args,
): Pick<Member, 'start' | 'single'> {
  if (typeof change === 'function') return { start: () => change(...args), single: false }
  return { start: () => change.single(...args)[Symbol.iterator](), single: true }
}

/** How far a batch has got when something fails decides what is known about it. */
export interface Progress {
  /** Set when the commit is sent: from here on it may have happened, and this is what its members return then. */
  committing?: { readonly batch: number; readonly values: readonly unknown[] }
}

export interface BatchPorts {
  readonly lane: Lane
  readonly renderer: Renderer
  /** What every transaction begins with: `begin`, and behind a pooler the settings of the session. */
  readonly opening: readonly Request[]
  readonly probe: HoldingProbe | undefined
}

const COMMIT: Request = { text: 'commit' }
const ROLLBACK: Request = { text: 'rollback' }

/**
 * Event numbers are given under this lock, which is held from here until the commit is done, with no round trip in
 * between: so their order is the order of the commits, and a reader that has seen N will never be passed by a smaller one.
 */
const EVENT_ORDER: Request = {
  text: `select pg_advisory_xact_lock(hashtext(current_schema() || '.events'))`,
  name: 'holdfast_order',
}

/**
 * The batch number, written with the batch. It fails, and with it the whole transaction, if somebody has looked this
 * batch up meanwhile and found it missing: a commit that was held up on the way cannot happen after that.
 */
export const markRequest = (lane: string, batch: number): Request => ({
  name: 'holdfast_mark',
  text: `with mark as (
      insert into writers as w (id, batch, used_at) values ($1, $2::bigint, now_ms())
      on conflict (id) do update set batch = excluded.batch, used_at = excluded.used_at where w.batch = $2::bigint - 1 returning 1
    ) select 1 / count(*)::int as marked from mark`,
  values: [lane, batch],
})

/**
 * Runs transitions side by side in one transaction: in each round the next statement of every one of them goes out
 * together. Safety rests on the guards in the statements, not on who comes first, so they may interleave; if any
 * fails, none of the batch happened. A transition of n statements takes n + 1 round trips, a single one.
 */
export async function performBatch(
  members: readonly Member[],
  ports: BatchPorts,
  progress: Progress,
): Promise<Performed> {
  await ports.probe?.({ at: 'begin', when: 'before' })
  const drives = members.map(({ start }) => new Drive(start()))
  if (members.every(({ single }) => single) && ports.probe === undefined) return performSingles(drives, ports)
  let { opening } = ports
  let changes = 0
  const holders = new Map<string, Drive>()
  for (let open = unfinished(drives); open.length > 0; open = unfinished(open)) {
    const ready = open.filter((drive) => mayGo(drive, holders))
    // Two of them wait for each other: as in the database itself, they are told apart by running again, one by one.
    if (ready.length === 0) throw new Error('members of a batch wait for each other')
    const answers = await sendRound(ready, opening, ports)
    opening = []
    changes += answers.reduce((sum, answer) => sum + answer.changes, 0)
    ready.forEach((drive, index) => drive.advance(answers[index]!))
  }
  const values = drives.map(({ value }) => value)
  const deferred = drives.flatMap((drive) => drive.deferred)
  const changed = changes > 0 || deferred.length > 0
  if (changed) {
    progress.committing = { batch: ++ports.lane.batch, values }
    await commit(opening, deferred, ports)
  }
  if (!changed && opening.length === 0) await ports.lane.send([ROLLBACK])
  return { values, changed }
}

/** What the members returned, and whether there was anything to commit. */
export interface Performed {
  readonly values: readonly unknown[]
  readonly changed: boolean
}

/** A row lock keeps other transactions out, and no member of this one: for those it is kept here. */
function mayGo(drive: Drive, holders: Map<string, Drive>): boolean {
  const lock = drive.next?.lock
  if (lock === undefined) return true
  const holder = holders.get(lock)
  if (holder !== undefined && holder !== drive && holder.next !== undefined) return false
  holders.set(lock, drive)
  return true
}

const unfinished = (drives: readonly Drive[]) => drives.filter((drive) => drive.next !== undefined)

/** No batch number here: if the answer is lost, singles are simply run again. */
async function performSingles(drives: readonly Drive[], { lane, renderer, opening }: BatchPorts): Promise<Performed> {
  const statements = drives.map((drive) => renderer.request(drive.next!.sql))
  const answers = await lane.send([...opening, ...statements, COMMIT])
  committedOrThrow(answers)
  drives.forEach((drive, index) => drive.advance(answers[opening.length + index]!))
  return { values: drives.map(({ value }) => value), changed: true }
}

async function sendRound(
  drives: readonly Drive[],
  opening: readonly Request[],
  ports: BatchPorts,
): Promise<Answered[]> {
  const { lane, renderer, probe } = ports
  const requests = drives.map((drive) => renderer.request(drive.next!.sql))
  if (probe === undefined) return (await lane.send([...opening, ...requests])).slice(opening.length)
  // With a probe each statement is a moment of its own.
  if (opening.length > 0) {
    await lane.send(opening)
    await probe({ at: 'begin', when: 'after' })
  }
  const answers: Answered[] = []
  for (const request of requests) {
    await probe({ at: 'statement', when: 'before', text: request.text })
    answers.push(...(await lane.send([request])))
    await probe({ at: 'statement', when: 'after', text: request.text })
  }
  return answers
}

async function commit(
  opening: readonly Request[],
  deferred: readonly Query<unknown>[],
  { lane, renderer, probe }: BatchPorts,
): Promise<void> {
  const events = deferred.map((query) => renderer.request(query.sql))
  const order = events.length === 0 ? [] : [renderer.own(EVENT_ORDER)]
  const mark = renderer.own(markRequest(lane.id, lane.batch))
  await probe?.({ at: 'commit', when: 'before' })
  const answers = await lane.send([...opening, ...order, ...events, mark, COMMIT])
  committedOrThrow(answers)
  await probe?.({ at: 'commit', when: 'after' })
}

/** A commit of a transaction that had failed is answered with ROLLBACK, and without an error. */
function committedOrThrow(answers: readonly Answered[]): void {
  const last = answers.at(-1)
  if (last?.command !== 'COMMIT') throw new Error(`the commit was answered with ${last?.command ?? 'nothing'}`)
}

/** One transition under way: what it asks next, what it has put off until the commit, what it returned. */
class Drive {
  readonly #transition: Transition<unknown>
  readonly deferred: Query<unknown>[] = []
  next: Query<unknown> | undefined
  value: unknown

  constructor(transition: Transition<unknown>) {
    this.#transition = transition
    this.#take(transition.next())
  }

  advance(answer: Answer): void {
    this.#take(this.#transition.next(this.next?.read(answer)))
  }

  #take(result: IteratorResult<Query<unknown>, unknown>): void {
    let step = result
    while (step.done !== true && step.value.deferred) {
      this.deferred.push(step.value)
      step = this.#transition.next(undefined)
    }
    this.next = step.done === true ? undefined : step.value
    if (step.done === true) this.value = step.value
  }
}
