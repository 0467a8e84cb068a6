import type { RunId, ScheduleId, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, sql } from '../store/sql.ts'
import { all, first, single } from '../store/transition.ts'
import type { Rule } from './rule.ts'

/**
 * A producer of messages and runs at instants. `ended`: it has done what it was for, or cannot any more, and says why;
 * `removed`: a person, its agent or its own "delete after run" took it away. Neither ever fires again.
 */
export const SCHEDULE_MOVES = {
  active: ['paused', 'ended', 'removed'],
  paused: ['active', 'ended', 'removed'],
  ended: ['removed'],
  removed: [],
} as const satisfies Record<string, readonly string[]>
export type ScheduleState = keyof typeof SCHEDULE_MOVES
export const SCHEDULE_STATES = Object.keys(SCHEDULE_MOVES) as ScheduleState[]
export const LIVE_SCHEDULES: readonly ScheduleState[] = ['active', 'paused']

export const SCHEDULE_KINDS = ['job', 'followup'] as const

/** What a firing does. All but the message to a thread start something of its own. */
export type Target =
  | { readonly kind: 'message'; readonly threadId: ThreadId; readonly generation: number; readonly text: string }
  | { readonly kind: 'agent'; readonly agent: string; readonly text: string }
  | {
      readonly kind: 'command'
      readonly argv: readonly [string, ...string[]]
      readonly cwd: string
      readonly env?: Readonly<Record<string, string>>
      readonly timeoutMs?: number
    }
  /** A function of a program. */
  | { readonly kind: 'call'; readonly function: string; readonly input?: unknown }
  | { readonly kind: 'webhook'; readonly url: string; readonly method?: string; readonly body?: unknown }

/** What happens to instants that nobody acted on in time. */
export type Misfire =
  /** The last of them fires, late, and says so; the others are skipped with a reason. */
  | { readonly policy: 'once' }
  | { readonly policy: 'skip' }
  /** The last so many fire, one after the other. */
  | { readonly policy: 'each'; readonly limit: number }

export interface Retry {
  readonly tries: number
  readonly baseMs: number
  readonly factor: number
  /** A share of the wait that is added at most, so that those that failed together do not return together. */
  readonly jitter: number
}

export interface ScheduleOptions {
  readonly misfire: Misfire
  /** What is later than this was missed. */
  readonly graceMs: number
  /** The last one is still at work. */
  readonly overlap: 'skip' | 'queue' | 'cancel'
  readonly retry: Retry
  /** Failures of a run that may be tried again, beyond those that always are: codes, and `exit:75` for a status. */
  readonly transient: readonly string[]
  /** Failures in a row after which it pauses; 0: never. */
  readonly pauseAfter: number
  /** The thread is stopped. */
  readonly stopped: 'hold' | 'drop' | 'wake'
  readonly jitterMs: number
  readonly deleteAfterRun: boolean
  readonly until?: number
  readonly maxFirings?: number
  readonly firingMicrousd?: number
  readonly dayMicrousd?: number
  /** Why it was asked for, in the words of whoever did. */
  readonly why?: string
}

export const DEFAULT_OPTIONS: ScheduleOptions = {
  misfire: { policy: 'once' },
  graceMs: LIMITS.misfireGraceMs,
  overlap: 'skip',
  retry: {
    tries: LIMITS.scheduleRetries,
    baseMs: LIMITS.scheduleRetryMs,
    factor: LIMITS.scheduleRetryFactor,
    jitter: 0,
  },
  transient: [],
  pauseAfter: LIMITS.scheduleFailures,
  stopped: 'hold',
  jitterMs: 0,
  deleteAfterRun: false,
}

export const scheduleRow = row({
  id: text<ScheduleId>(),
  name: text(),
  kind: oneOf(SCHEDULE_KINDS),
  state: oneOf(SCHEDULE_STATES),
  reason: nullable(text()),
  rule: json<Rule>(),
  target: json<Target>(),
  options: json<ScheduleOptions>(),
  targetThread: nullable(text<ThreadId>()),
  /** Who asked for it, and who is told what becomes of it. */
  ownerThread: nullable(text<ThreadId>()),
  ownerRun: nullable(text<RunId>()),
  ownerAgent: nullable(text()),
  madeBy: text(),
  nextAt: nullable(integer),
  nextFireAt: nullable(integer),
  /** In a row. */
  failures: integer,
  firings: integer,
  /** Counts the edits. */
  version: integer,
  createdAt: integer,
  updatedAt: integer,
  endedAt: nullable(integer),
})
export type Schedule = Decoded<typeof scheduleRow>

export const findSchedule = single((id: ScheduleId) =>
  first(scheduleRow, sql`select * from schedules where id = ${id}`),
)

/** By its name the one that is not over, else the newest; by the beginning of its id: two at most, to know whether it is unique. */
export const schedulesByName = single((name: string) =>
  all(
    scheduleRow,
    sql`select * from schedules where name = ${name} or (id >= ${name} and id < ${`${name}\u{10ffff}`})
      order by case when name = ${name} and state in (${literals(LIVE_SCHEDULES)}) then 0 when name = ${name} then 1 else 2 end,
        created_at desc, id desc limit 2`,
  ),
)

export interface ScheduleFilter {
  readonly states?: readonly ScheduleState[]
  readonly kind?: Schedule['kind']
  readonly ownerThread?: ThreadId
  readonly targetThread?: ThreadId
  /** The last one of the page before. */
  readonly after?: ScheduleId
  readonly limit: number
}

/** Later than any instant: nothing comes. */
const comes = sql`coalesce(next_fire_at, 9000000000000000)`

const comesAfter = (id: ScheduleId) => {
  const last = sql`(select ${comes} from schedules where id = ${id})`
  return sql`(${comes} > ${last} or (${comes} = ${last} and id < ${id}))`
}

/** By what comes next; those for which nothing comes are last, newest first. */
export const listSchedules = single((filter: ScheduleFilter) =>
  all(
    scheduleRow,
    sql`select * from schedules where state in (${literals(filter.states ?? SCHEDULE_STATES)})
      and ${filter.kind === undefined ? sql`1 = 1` : sql`kind = ${filter.kind}`}
      and ${filter.ownerThread === undefined ? sql`1 = 1` : sql`owner_thread = ${filter.ownerThread}`}
      and ${filter.targetThread === undefined ? sql`1 = 1` : sql`target_thread = ${filter.targetThread}`}
      and ${filter.after === undefined ? sql`1 = 1` : comesAfter(filter.after)}
      order by ${comes}, id desc limit ${filter.limit}`,
  ),
)

/** So that not all that are due on the hour come on the hour: the same for the same instant, whoever computes it. */
export function jitterOf(id: ScheduleId, dueAt: number, jitterMs: number): number {
  if (jitterMs === 0) return 0
  return hash(`${id}.${dueAt}`) % (jitterMs + 1)
}

/** FNV-1a: spread, not secrecy. */
export function hash(words: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < words.length; index += 1) value = Math.imul(value ^ words.charCodeAt(index), 0x01000193)
  return value >>> 0
}
