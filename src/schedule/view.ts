import { iso } from '../base/clock.ts'
import type { Run } from '../runs/run.ts'
import type { Occurrence } from './occurrence.ts'
import type { Rule } from './rule.ts'
import type { Schedule, ScheduleOptions, Target } from './schedule.ts'
import { AT_ONCE } from './settle.ts'

/** A key only where there is a value: what is unknown is absent in JSON, not null. */
const optional = <K extends string, T>(key: K, value: T | null | undefined) =>
  (value === null || value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T }

const optionalInstant = <K extends string>(key: K, value: number | null | undefined) =>
  optional(key, value === null || value === undefined ? undefined : iso(value))

export type RuleView =
  | { readonly kind: 'once'; readonly at: string }
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: string }
  | { readonly kind: 'cron'; readonly expression: string; readonly zone: string }

export function viewRule(rule: Rule): RuleView {
  if (rule.kind === 'once') return { kind: 'once', at: iso(rule.at) }
  return rule.kind === 'every' ? { ...rule, anchor: iso(rule.anchor) } : rule
}

export function ruleIn(view: RuleView): Rule {
  if (view.kind === 'once') return { kind: 'once', at: Date.parse(view.at) }
  return view.kind === 'every' ? { ...view, anchor: Date.parse(view.anchor) } : view
}

/** Without the environment of a command. */
export type TargetView =
  | { readonly kind: 'message'; readonly threadId: string; readonly text: string }
  | { readonly kind: 'agent'; readonly agent: string; readonly text: string }
  | { readonly kind: 'command'; readonly argv: readonly string[]; readonly cwd: string; readonly timeoutMs?: number }
  | { readonly kind: 'call'; readonly function: string; readonly input?: unknown }
  | { readonly kind: 'webhook'; readonly url: string; readonly method?: string; readonly body?: unknown }

function viewTarget(target: Target): TargetView {
  if (target.kind === 'message') return { kind: 'message', threadId: target.threadId, text: target.text }
  if (target.kind !== 'command') return target
  const { kind, argv, cwd, timeoutMs } = target
  return { kind, argv, cwd, ...optional('timeoutMs', timeoutMs) }
}

function viewOptions(options: ScheduleOptions) {
  const { until, firingMicrousd, dayMicrousd, ...same } = options
  return {
    ...same,
    ...optionalInstant('until', until),
    ...optional('maxCostUsd', firingMicrousd === undefined ? undefined : firingMicrousd / 1e6),
    ...optional('maxCostUsdADay', dayMicrousd === undefined ? undefined : dayMicrousd / 1e6),
  }
}

/** The public JSON form of a schedule: what the command line prints and the HTTP API serves. */
export function viewSchedule(schedule: Schedule) {
  const { id, name, kind, state, reason, rule, target, options, failures, firings, version, madeBy } = schedule
  return {
    id,
    name,
    kind,
    state,
    ...optional('reason', reason),
    rule: viewRule(rule),
    target: viewTarget(target),
    options: viewOptions(options),
    ...optionalInstant('nextAt', schedule.nextAt),
    ...optional('ownerThreadId', schedule.ownerThread),
    ...optional('ownerRunId', schedule.ownerRun),
    ...optional('ownerAgent', schedule.ownerAgent),
    madeBy,
    failures,
    firings,
    version,
    createdAt: iso(schedule.createdAt),
    updatedAt: iso(schedule.updatedAt),
    ...optionalInstant('endedAt', schedule.endedAt),
  }
}
export type ScheduleView = ReturnType<typeof viewSchedule>

/** The public JSON form of an occurrence. With the run that it led to, while that goes on, also what that is at. */
export function viewOccurrence(occurrence: Occurrence, run?: Run) {
  const { id, scheduleId, dueAt, state, attempts, origin, lateMs, instants, costMicrousd } = occurrence
  const isOpen = state === 'due' || state === 'dispatched'
  return {
    id,
    scheduleId,
    dueAt: iso(dueAt),
    ...optionalInstant('firedAt', occurrence.firedAt),
    state,
    ...optional('reason', occurrence.reason),
    attempts,
    ...optional('runId', occurrence.runId),
    origin,
    lateMs,
    ...(instants > 1 ? { instants, ...optionalInstant('lastAt', occurrence.lastAt) } : {}),
    ...optional('waits', occurrence.waits),
    ...optional('error', occurrence.error),
    // One whose turn has come has no time of its own.
    ...optionalInstant('nextAttemptAt', occurrence.nextAttemptAt === AT_ONCE ? null : occurrence.nextAttemptAt),
    ...optional('threadId', occurrence.threadId),
    ...optional('messageId', occurrence.messageId),
    ...(isOpen ? { ...optional('runState', run?.state), ...optional('runParkedFor', run?.parkedFor) } : {}),
    ...optional('by', occurrence.byWhom),
    costUsd: costMicrousd / 1e6,
    ...optionalInstant('settledAt', occurrence.settledAt),
  }
}
export type OccurrenceView = ReturnType<typeof viewOccurrence>
