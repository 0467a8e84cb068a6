import { digestOf } from '../base/canonical-json.ts'
import type { ActionId, AttemptId, RunId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { record } from '../events/event.ts'
import { row, text } from '../store/row.ts'
import { among, now, sql } from '../store/sql.ts'
import { all, one } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { appendEntry } from '../threads/conversation.ts'
import { actionRow } from './action.ts'
import { recordSettled } from './propose.ts'

/*
 * What a command-line agent tells of its turn when it is over: what its model said, and the tools that it used by its own rules.
 * Nobody here allowed or performed them; they are in the ledger so that a statement of the run is not silent about them.
 */

/** `open`: it was begun, and nobody said what became of it. `refused`: the client did not carry it out. */
export type ToldState = 'done' | 'refused' | 'open'

export interface ToldCall {
  readonly id: string
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly input: unknown
  readonly state: ToldState
  readonly result?: unknown
  readonly error?: string
}

/** One reply of its model, and what was done because of it. */
export interface ToldStep {
  readonly text: string
  readonly calls: readonly ToldCall[]
}

export interface ToldPlace {
  readonly runId: RunId
  readonly threadId: ThreadId
  readonly generation: number
  /** Whoever tells it again, for the same attempt, tells the same. */
  readonly attemptId: AttemptId
  /** The thread under which the hooks of the same session are heard, if there are any: what they recorded is not told twice. */
  readonly heardAs: ThreadId | null
  /** It came to its end by itself: what is open was not carried out. Otherwise nobody knows. */
  readonly isOver: boolean
}

export function* recordTold(place: ToldPlace, steps: readonly ToldStep[]): Transition<void> {
  const { runId, threadId, generation } = place
  const heard = yield* heardElsewhere(place, steps)
  let number = 0
  for (const { text: words, calls } of steps) {
    const toolCalls = calls.map(({ id, tool, input }) => ({ id, tool, input: clipped(input) }))
    const entry = yield* appendEntry({
      threadId,
      generation,
      runId,
      kind: 'assistant',
      body: { text: words, toolCalls },
    })
    for (const [ordinal, call] of calls.entries()) {
      number += 1
      if (!heard.has(call.id)) yield* recordCall(place, call, { entrySeq: entry.seq, ordinal, number })
    }
    yield* record({ type: 'step.recorded', threadId, runId, data: { entry: entry.seq, actions: calls.length } })
  }
}

const callRow = row({ callId: text() })

/** Those for which the session's hooks asked for leave: they are actions of the turn that the hooks saw. */
function* heardElsewhere({ heardAs }: ToldPlace, steps: readonly ToldStep[]): Transition<ReadonlySet<string>> {
  const ids = steps.flatMap(({ calls }) => calls.map(({ id }) => id))
  if (heardAs === null || ids.length === 0) return new Set()
  const heard = yield* all(
    callRow,
    sql`select call_id from actions where thread_id = ${heardAs} and call_id in ${among(ids)}`,
  )
  return new Set(heard.map(({ callId }) => callId))
}

const UNKNOWN = 'its client ended before it said what became of it'
const LEFT_OUT = 'its client ended without carrying it out'

/** In the words of the ledger. A call that failed was carried out all the same: what it said is its result. */
function settled({ state, effect, result, error }: ToldCall, isOver: boolean) {
  if (state === 'done') return { state: 'done', result: clipped(result ?? null), error: null, by: 'its client says so' }
  const none = { result: undefined, by: 'its client says so' }
  if (state === 'refused') return { ...none, state: 'denied', error: clip(error ?? 'its client refused it') }
  if (isOver) return { ...none, state: 'failed', error: LEFT_OUT }
  return { result: undefined, by: 'nobody', state: effect === 'write' ? 'in_doubt' : 'failed', error: UNKNOWN }
}

const HAPPENED: readonly string[] = ['done', 'in_doubt']

interface CallPlace {
  readonly entrySeq: number
  readonly ordinal: number
  readonly number: number
}

function* recordCall(place: ToldPlace, call: ToldCall, at: CallPlace): Transition<void> {
  const { state, result, error, by } = settled(call, place.isOver)
  const input = JSON.stringify(clipped(call.input))
  const happened = HAPPENED.includes(state)
  const recorded = yield* one(
    actionRow,
    sql`insert into actions (id, run_id, thread_id, entry_seq, ordinal, call_id, tool, effect, repeats, input, signature,
        state, mark, tries, error, result, settled_by, created_at, started_at, settled_at)
      values (${idFor(place, at.number)}, ${place.runId}, ${place.threadId}, ${at.entrySeq}, ${at.ordinal}, ${call.id},
        ${call.tool}, ${call.effect}, 'each', ${input}, ${digestOf([call.tool, input])}, ${state}, 'told',
        ${happened ? 1 : 0}, ${error}, ${result === undefined ? null : JSON.stringify(result)}, ${by}, ${now},
        ${happened ? sql`${now}` : sql`null`}, ${now})
      returning *`,
  )
  yield* recordSettled(recorded)
}

/** Ordered by time, as every id is: that of its attempt, and its number there. */
const idFor = ({ attemptId }: ToldPlace, number: number) =>
  `act_${attemptId.slice('att_'.length, -6)}${number.toString(16).padStart(6, '0')}` as ActionId

/** PostgreSQL keeps no NUL in a text. */
const clip = (words: string): string => {
  const clean = words.replaceAll('\0', '\u{fffd}')
  return clean.length <= LIMITS.toldCharacters ? clean : `${clean.slice(0, LIMITS.toldCharacters)}…`
}

/** What is too long to keep is shown by its beginning. */
function clipped(value: unknown): unknown {
  if (typeof value === 'string') return clip(value)
  const whole = JSON.stringify(value)
  return whole.length <= LIMITS.toldCharacters ? value : { beginning: clip(whole) }
}
