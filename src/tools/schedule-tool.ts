import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import type { ScheduleId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { parseInstant } from '../base/zone.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Store } from '../store/store.ts'
import { TOOL_LIMITS } from './limits.ts'
import { validateInput } from './schema.ts'

/* What the tools for schedules have in common. Thread and run come from the action, never from the model. */

export interface ScheduleToolOptions {
  readonly store: Store
  readonly clock: Pick<Clock, 'now'>
  /** Whose tools they are. */
  readonly agent: string
}

type Checked = { readonly input: unknown } | { readonly error: string }
type Own = Pick<Tool, 'name' | 'description' | 'effect' | 'inputSchema' | 'perform'> & Pick<Tool, 'effectOf'>

/** Performed again after a crash without a second effect: all ids come from the action. */
export const scheduleTool = (own: Own, check: (input: never) => Checked = (input) => ({ input })): Tool => ({
  ...own,
  repeat: 'each',
  timeoutMs: TOOL_LIMITS.scheduleMs,
  idempotent: true,
  identity: (input) => input,
  validate: (input) => {
    const valid = validateInput(own.inputSchema, input)
    return 'error' in valid ? valid : check(valid.input as never)
  },
})

/** The action's own number: the same schedule, however often the action is performed. */
export const scheduleIdOf = ({ key }: ToolContext) => `sch_${key.slice(key.indexOf('_') + 1)}` as ScheduleId

/** In the reason of what an action took away, so that the same action, performed again, knows its own doing. */
export const takenAwayBy = (agent: string, { key }: ToolContext) => `cancelled by agent ${agent} (${key})`

export const asAgent = (agent: string) => `agent ${agent}`

export const failed = (error: string): ToolOutcome => ({ kind: 'failed', error })
export const done = (result: unknown): ToolOutcome => ({ kind: 'done', result })

export const iso = (instant: number | null) => (instant === null ? null : new Date(instant).toISOString())

export const INSTANT: JsonSchema = {
  type: 'string',
  description: 'An instant with its zone, as 2026-12-01T09:00:00Z or 2026-12-01T10:00:00+01:00.',
}

/** An instant that lies ahead, or what is wrong with it in words for the model. */
export function readAhead(name: string, text: string, { now }: { readonly now: number }): number | string {
  try {
    const { at, isLocal } = parseInstant(text, 'UTC')
    if (isLocal) return `${name}: has no zone; write it with Z or an offset, as 2026-12-01T09:00:00Z`
    if (at <= now) return passed(name, at, now)
    if (at - now > LIMITS.followupFarMs) return `${name}: is more than a year ahead; now it is ${iso(now)}`
    return at
  } catch (error) {
    return `${name}: ${describeError(error)}`
  }
}

export const passed = (name: string, at: number, now: number) => `${name}: ${iso(at)} has passed; now it is ${iso(now)}`

/** For a sentence: what would break its line is a space. */
export const inOneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

/** Why a schedule that is over cannot be changed any more. */
export const overBecause = ({ state, reason }: Schedule) => `it is over: ${reason ?? state}`
