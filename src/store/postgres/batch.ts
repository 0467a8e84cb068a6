import { invariant } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import type { HoldingProbe } from '../store.ts'
import { grouped, handedOut, rowsGiven } from '../joined.ts'
import type { Group } from '../joined.ts'
import { Rounds } from '../rounds.ts'
import type { AnyChange, Gathered } from '../rounds.ts'
import { isSingle } from '../transition.ts'
import type { Answer, Query } from '../transition.ts'
import type { Answered, Lane } from './lane.ts'
import { lateOf } from './statement.ts'
import type { Asked, Closing, Renderer, Request } from './statement.ts'

/** One `apply` that waits for its commit. */
export interface Member {
  readonly change: AnyChange
  readonly args: readonly unknown[]
  /** About so many rows, by the longest list that it was given. */
  readonly rows: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

export const rowsOf = (args: readonly unknown[]): number =>
  args.reduce<number>((most, arg) => (Array.isArray(arg) ? Math.max(most, arg.length) : most), 1)

/** Takes the first of them for one transaction: so many, or as many as have so many rows. */
export function takeBatch(waiting: Member[]): Member[] {
  let [count, rows] = [0, 0]
  while (count < Math.min(waiting.length, LIMITS.batchMembers) && rows < LIMITS.batchRows)
    rows += waiting[count++]!.rows
  return waiting.splice(0, count)
}

/** Likely statements are taken to be answered as they nearly always are; where they were not, the batch fails. */
export type Manner = 'hopeful' | 'careful'

/** How far a batch has got when something fails decides what is known about it. */
export interface Progress {
  /** Set when the commit is sent: from here on it may have happened, and this is what its members return then. */
  committing?: {
    readonly batch: number
    readonly topics: ReadonlySet<string>
    /** What would have come with its answer, to be asked for otherwise. */
    readonly late: () => readonly Request[]
    readonly values: (late: readonly Answer[]) => readonly unknown[]
  }
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
 * The end of a transaction in one statement, or all of it: what is likely, checked; then the batch number, and the events.
 *
 * The number is divided by zero, and with it the whole transaction fails, if what was likely is not so, and if somebody has looked
 * this batch up meanwhile and found it missing: a commit that was held up on the way cannot happen after that. Event numbers are
 * given under a lock that is held from here until the commit is done, with no round trip in between, to rows of `ordered`, so after
 * it was had: their order is the order of the commits, and a reader that has seen N will never be passed by a smaller one.
 */
const ENDING: Closing = ({ checked, told, late, lane, batch }) => `
    checked as materialized (${checked})${told === undefined ? '' : `,\n    ${ORDERED},\n    told as (${told})`}
    insert into writers as w (id, batch, used_at)
      select ${lane}::text, ${batch}::bigint / count(*), now_ms() from checked where yes = 1
    on conflict (id) do update
      set batch = excluded.batch / (w.batch = excluded.batch - 1)::int, used_at = excluded.used_at
    ${late.length === 0 ? '' : `returning ${late.join(', ')}`}`

const ORDERED = `ordered as materialized (
      select pg_advisory_xact_lock(hashtext(current_schema() || '.events')) from checked where yes = 1
    )`

/**
 * Runs transitions side by side in one transaction: in each round the next statement of every one of them goes out together. A
 * transition of n statements takes n + 1 round trips; one whose statements are all likely takes one, and so does a single.
 */
export async function performBatch(
  members: readonly Member[],
  manner: Manner,
  ports: BatchPorts,
  progress: Progress,
): Promise<Performed> {
  const { lane, probe } = ports
  await probe?.({ at: 'begin', when: 'before' })
  // What is known to be one statement can share a round trip with begin and commit.
  const areSingles = probe === undefined && members.every(({ change }) => isSingle(change))
  const isHopeful = manner === 'hopeful' && probe === undefined && !areSingles
  const rounds = new Rounds(isHopeful)
  for (const { change, args } of members) rounds.add(change, args)
  if (areSingles) return performSingles(rounds, ports)
  let { opening } = ports
  let changes = 0
  for (let asked = rounds.next(); asked !== undefined; asked = rounds.next()) {
    const ahead = aheadOf(rounds)
    const answers = await sendRound(ahead, asked, opening, ports)
    opening = []
    changes += answers.reduce((sum, answer) => sum + answer.changes, ahead.asked.length)
    rounds.answer(answers)
  }
  const { topics, deferred } = rounds
  const ahead = aheadOf(rounds)
  const isChanged = changes + ahead.asked.length + deferred.size > 0
  if (isChanged) {
    const late = () => ahead.asked.slice(0, ahead.telling).map((asked) => ports.renderer.stored(asked))
    const values = (answers: readonly Answer[]) => (ahead.hear(answers), rounds.values())
    progress.committing = { batch: ++lane.batch, topics, late, values }
    await commit(opening, ahead, deferred, ports)
  }
  if (!isChanged && opening.length === 0) await lane.send([ROLLBACK])
  return { values: rounds.values(), changed: isChanged, topics }
}

/** What was not waited for; first what returns something, which others look at. */
interface Ahead {
  readonly asked: readonly Asked[]
  readonly telling: number
  /** What those have returned. */
  readonly hear: (answers: readonly Answer[]) => void
}

function aheadOf(rounds: Rounds): Ahead {
  const { telling, silent } = rounds.takeAhead()
  const groups = grouped(telling, false)
  return {
    asked: [...groups.map(askedOf), ...inOrder(silent)],
    telling: groups.length,
    hear: (answers) => rounds.hear(telling, handedOut(groups, answers, telling.length)),
  }
}

const askedOf = ({ joint, queries }: Group): Asked => ({ joint: joint!, rows: rowsGiven(queries) })

const inOrder = (gathered: Gathered): Asked[] => Array.from(gathered, ([joint, rows]) => ({ joint, rows }))

/** What the members returned, and whether there was anything to commit. */
export interface Performed {
  readonly values: readonly unknown[]
  readonly changed: boolean
  readonly topics: ReadonlySet<string>
}

const NO_TOPICS: ReadonlySet<string> = new Set()

/** No batch number here: if the answer is lost, singles are simply run again. */
async function performSingles(rounds: Rounds, { lane, renderer, opening }: BatchPorts): Promise<Performed> {
  const asked = rounds.next() ?? []
  const groups = grouped(asked, true)
  const requests = groups.map((group) => requestOf(group, renderer))
  const answered = renderer.opened(await lane.send([...opening, ...requests, COMMIT]))
  committedOrThrow(answered)
  rounds.answer(handedOut(groups, answered.slice(opening.length, -1), asked.length))
  return { values: rounds.values(), changed: true, topics: NO_TOPICS }
}

const requestOf = (group: Group, renderer: Renderer): Request =>
  group.joint === undefined ? renderer.request(group.queries[0]!.sql) : renderer.joint(askedOf(group))

async function sendRound(
  ahead: Ahead,
  asked: readonly Query<unknown>[],
  opening: readonly Request[],
  ports: BatchPorts,
): Promise<readonly Answer[]> {
  const { lane, renderer, probe } = ports
  if (probe !== undefined) return sendProbed(asked, opening, ports, probe)
  const groups = grouped(asked, true)
  const before = ahead.asked.map((each) => renderer.checked(each))
  const requests = groups.map((group) => requestOf(group, renderer))
  const answered = renderer.opened(await lane.send([...opening, ...before, ...requests])).slice(opening.length)
  ahead.hear(answered.slice(0, ahead.telling))
  return handedOut(groups, answered.slice(before.length), asked.length)
}

/** With a probe each statement is a moment of its own. */
async function sendProbed(
  asked: readonly Query<unknown>[],
  opening: readonly Request[],
  { lane, renderer }: BatchPorts,
  probe: HoldingProbe,
): Promise<readonly Answer[]> {
  const requests = asked.map(({ sql, given }) =>
    given === undefined ? renderer.request(sql) : renderer.joint({ joint: given.joint, rows: [...given.values] }),
  )
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
  ahead: Ahead,
  deferred: Gathered,
  { lane, renderer, probe }: BatchPorts,
): Promise<void> {
  await probe?.({ at: 'commit', when: 'before' })
  const [events, ...others] = inOrder(deferred)
  invariant(others.length === 0, 'what is kept for the commit is one kind of statement')
  const closing = renderer.closing(ahead.asked, events, ENDING, [lane.id, lane.batch])
  // A statement by itself is a transaction, unless what it begins with has to be said first.
  const isAlone = opening.length === 1 && probe === undefined
  const answers = await lane.send(isAlone ? [closing] : [...opening, closing, COMMIT])
  if (!isAlone) committedOrThrow(answers)
  const [told] = answers.at(isAlone ? 0 : -2)!.rows
  ahead.hear(ahead.asked.slice(0, ahead.telling).map(({ joint }) => lateAnswer(told![lateOf(joint.table)])))
  await probe?.({ at: 'commit', when: 'after' })
}

const lateAnswer = (rows: unknown): Answer => ({ rows: rows as Answer['rows'], changes: 0 })

/** A commit of a transaction that had failed is answered with ROLLBACK, and without an error. */
function committedOrThrow(answers: readonly Answered[]): void {
  const last = answers.at(-1)
  if (last?.command !== 'COMMIT') throw new Error(`the commit was answered with ${last?.command ?? 'nothing'}`)
}
