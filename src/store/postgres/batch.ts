import type { HoldingProbe } from '../store.ts'
import type { Answer, Change, Query, Transition } from '../transition.ts'
import { join } from './join.ts'
import type { Answered, Lane } from './lane.ts'
import type { Closing, Renderer, Request } from './statement.ts'

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
  committing?: { readonly batch: number; readonly values: readonly unknown[]; readonly topics: ReadonlySet<string> }
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
  text: `with ${markedBy('$1', '$2')} select 1 / count(*)::int as marked from mark`,
  values: [lane, batch],
})

const markedBy = (lane: string, batch: string) => `mark as (
    insert into writers as w (id, batch, used_at) values (${lane}, ${batch}::bigint, now_ms())
    on conflict (id) do update set batch = excluded.batch, used_at = excluded.used_at where w.batch = ${batch}::bigint - 1 returning 1
  )`

/** Both in one statement with the events: numbers are given to rows of `ordered`, so after its lock was had. */
const ORDERED_AND_MARKED: Closing = {
  text: (told, lane, batch) => `with ordered as materialized (
      select pg_advisory_xact_lock(hashtext(current_schema() || '.events'))
    ), ${markedBy(lane, batch)}, told as (${told}) select 1 / count(*)::int as marked from mark`,
}

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
    const answers = await sendRound(
      ready.flatMap(({ asks }) => asks),
      opening,
      ports,
    )
    opening = []
    changes += answers.reduce((sum, answer) => sum + answer.changes, 0)
    let taken = 0
    for (const drive of ready) drive.advance(answers.slice(taken, (taken += drive.asks.length)))
  }
  const values = drives.map(({ value }) => value)
  const deferred = drives.flatMap((drive) => drive.deferred)
  const changed = changes > 0 || deferred.length > 0
  const topics = new Set(deferred.flatMap(({ topic }) => topic ?? []))
  if (changed) {
    progress.committing = { batch: ++ports.lane.batch, values, topics }
    await commit(opening, deferred, ports)
  }
  if (!changed && opening.length === 0) await ports.lane.send([ROLLBACK])
  return { values, changed, topics }
}

/** What the members returned, and whether there was anything to commit. */
export interface Performed {
  readonly values: readonly unknown[]
  readonly changed: boolean
  readonly topics: ReadonlySet<string>
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

const NO_TOPICS: ReadonlySet<string> = new Set()

/** No batch number here: if the answer is lost, singles are simply run again. */
async function performSingles(drives: readonly Drive[], { lane, renderer, opening }: BatchPorts): Promise<Performed> {
  const joined = join(
    drives.flatMap(({ asks }) => asks),
    renderer,
  )
  const answered = renderer.opened(await lane.send([...opening, ...joined.requests, COMMIT]))
  committedOrThrow(answered)
  const answers = joined.answers(answered.slice(opening.length, -1))
  drives.forEach((drive, index) => drive.advance([answers[index]!]))
  return { values: drives.map(({ value }) => value), changed: true, topics: NO_TOPICS }
}

async function sendRound(
  queries: readonly Query<unknown>[],
  opening: readonly Request[],
  ports: BatchPorts,
): Promise<Answered[]> {
  const { lane, renderer, probe } = ports
  if (probe === undefined) {
    const joined = join(queries, renderer)
    const answered = renderer.opened(await lane.send([...opening, ...joined.requests]))
    return joined.answers(answered.slice(opening.length))
  }
  const requests = queries.map(({ sql }) => renderer.request(sql))
  // With a probe each statement is a moment of its own.
  if (opening.length > 0) {
    await lane.send(opening)
    await probe({ at: 'begin', when: 'after' })
  }
  const answers: Answered[] = []
  for (const request of requests) {
    await probe({ at: 'statement', when: 'before', text: request.text })
    answers.push(...renderer.opened(await lane.send([request])))
    await probe({ at: 'statement', when: 'after', text: request.text })
  }
  return answers
}

async function commit(
  opening: readonly Request[],
  deferred: readonly Query<unknown>[],
  { lane, renderer, probe }: BatchPorts,
): Promise<void> {
  await probe?.({ at: 'commit', when: 'before' })
  const answers = await lane.send([...opening, ...closing(deferred, lane, renderer), COMMIT])
  committedOrThrow(answers)
  await probe?.({ at: 'commit', when: 'after' })
}

function closing(deferred: readonly Query<unknown>[], lane: Lane, renderer: Renderer): readonly Request[] {
  const given = deferred.flatMap((query) => query.given ?? [])
  const [some] = given
  if (some !== undefined && given.length === deferred.length && given.every(({ joint }) => joint === some.joint))
    return [renderer.closing(some.joint, given, ORDERED_AND_MARKED, [lane.id, lane.batch])]
  const last = join(deferred, renderer).requests
  const mark = renderer.own(markRequest(lane.id, lane.batch))
  return last.length === 0 ? [mark] : [renderer.own(EVENT_ORDER), ...last, mark]
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

  /** The statements of the next round: one, or several that do not need each other's answers. */
  get asks(): readonly Query<unknown>[] {
    return this.next === undefined ? [] : (this.next.parts ?? [this.next])
  }

  advance(answers: readonly Answer[]): void {
    const { asks, next } = this
    const read = asks.map((query, index) => query.read(answers[index]!))
    this.#take(this.#transition.next(next?.parts === undefined ? read[0] : read))
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
