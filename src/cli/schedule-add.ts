import { insideRun } from '../actions/verdict.ts'
import { formatDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { newScheduleId } from '../base/ids.ts'
import { localTime, machineZone, parseInstant } from '../base/zone.ts'
import { theSchedule } from '../control/find.ts'
import { addSchedule, editSchedule } from '../schedule/edit.ts'
import type { Edit, NewRule, NewSchedule } from '../schedule/edit.ts'
import { until } from '../schedule/plan.ts'
import { readName, readOptions, readRule, settledFor } from '../schedule/request.ts'
import { nextInstants } from '../schedule/rule.ts'
import type { Rule } from '../schedule/rule.ts'
import { DEFAULT_OPTIONS } from '../schedule/schedule.ts'
import type { Schedule, ScheduleOptions } from '../schedule/schedule.ts'
import { viewRule, viewSchedule } from '../schedule/view.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { table } from './output.ts'
import { optionsOf, whenOf } from './schedule-flags.ts'
import type { ScheduleFlags, WhenFlags } from './schedule-flags.ts'
import { hasDaemon, maker, ownerOf } from './schedule-owner.ts'
import { adjusted, noTarget, targetOf } from './schedule-target.ts'
import type { Words } from './schedule-target.ts'
import { describeTarget, describeWhen, fromNow, shownTime, zoneOf } from './schedule-words.ts'

export async function add(context: Context, name: string, words: Words, flags: ScheduleFlags): Promise<number> {
  const { runtime, output } = context
  const zone = zoneOfFlags(flags)
  const rule = readWhen(context, flags)
  const options = { ...DEFAULT_OPTIONS, ...readOptions(optionsOf(flags), DEFAULT_OPTIONS, zone) }
  readName(name)
  const target = await targetOf(context, words, flags)
  if (flags.dryRun === true) return dryRun(context, settledFor(rule, runtime.clock.now()), options)
  if (target === undefined) throw noTarget()
  const schedule: NewSchedule = {
    id: newScheduleId(runtime.random),
    name,
    kind: 'job',
    rule,
    target,
    options,
    madeBy: maker(context),
    ...(await ownerOf(context, flags.owner)),
  }
  const added = await runtime.store.apply(addSchedule, schedule)
  if (added.kind === 'never') throw neverComes()
  if (added.kind === 'taken') throw nameTaken(added.schedule)
  report(context, added.schedule, 'added')
  if (!(await hasDaemon(context)))
    output.note('it is stored, but no daemon is running: nothing fires before `holdfast up`')
  return EXIT.done
}

export async function edit(context: Context, given: string, words: Words, flags: ScheduleFlags): Promise<number> {
  const { runtime } = context
  const schedule = await theSchedule(runtime.store, given)
  const when = editedWhen(schedule.rule, flags)
  const rule = when === undefined ? undefined : readWhen(context, when)
  const target = (await targetOf(context, words, flags)) ?? adjusted(schedule.target, flags)
  const options = readOptions(optionsOf(flags), schedule.options, zoneOfFlags(flags, schedule))
  if (rule === undefined && target === undefined && Object.keys(options).length === 0 && flags.dryRun !== true)
    throw new HoldfastError('usage/schedule', 'this changes nothing', { remedy: 'say what is to be different' })
  if (flags.dryRun === true) {
    const asked = rule === undefined ? schedule.rule : settledFor(rule, runtime.clock.now())
    return dryRun(context, asked, { ...schedule.options, ...options }, schedule.firings)
  }
  if (target?.kind === 'webhook' && schedule.ownerRun === null && context.environment.run !== undefined)
    throw insideRun(`this process was started by ${context.environment.run}`)
  const change: Edit = {
    options,
    ...(rule === undefined ? {} : { rule }),
    ...(target === undefined ? {} : { target }),
  }
  const edited = await runtime.store.apply(editSchedule, schedule.id, change, maker(context))
  if (edited.kind === 'never') throw neverComes()
  if (edited.kind !== 'edited') throw isOver(schedule)
  report(context, edited.schedule, 'changed')
  return EXIT.done
}

/** What is not said of a rule stays: another expression is one in the same zone. */
function editedWhen(rule: Rule, flags: WhenFlags): WhenFlags | undefined {
  const { in: delay, at, every, anchor, cron, tz } = flags
  const isOther = delay !== undefined || at !== undefined || every !== undefined
  if (rule.kind === 'cron' && !isOther && (cron ?? tz) !== undefined)
    return { ...flags, cron: cron ?? rule.expression, tz: tz ?? rule.zone }
  if (rule.kind === 'every' && !isOther && cron === undefined && anchor !== undefined)
    return { ...flags, every: formatDuration(rule.everyMs) }
  return isOther || cron !== undefined || anchor !== undefined ? flags : undefined
}

function report({ runtime, output }: Context, schedule: Schedule, what: string): void {
  const { name, rule, target, nextAt } = schedule
  const zone = zoneOf(rule)
  output.result(viewSchedule(schedule), () =>
    [
      `${name} ${what}: ${describeWhen(rule)}, ${describeTarget(target)}`,
      ...(nextAt === null ? [] : [`next: ${shownTime(nextAt, zone)} (${fromNow(nextAt, runtime.clock.now())})`]),
    ].join('\n'),
  )
}

const zoneOfFlags = ({ tz }: WhenFlags, schedule?: Schedule) =>
  tz ?? (schedule === undefined ? machineZone() : zoneOf(schedule.rule))

/** An instant that has passed is a slip of the hand: whoever wants it now says so in another way. */
export function readWhen({ runtime, output }: Context, flags: WhenFlags): NewRule {
  const now = runtime.clock.now()
  const rule = readRule(whenOf(flags), { now, zone: machineZone() })
  if (rule.kind === 'once' && rule.at <= now)
    throw new HoldfastError('usage/schedule', `${flags.at ?? ''} has passed, ${fromNow(rule.at, now)}`, {
      remedy: 'choose a later instant, or say --in 1s',
    })
  noteZone(output.note, flags)
  return rule
}

/** Times without a zone mean different instants on different machines. */
function noteZone(note: (text: string) => void, { at, anchor, until: end, cron, tz }: WhenFlags): void {
  if (tz !== undefined) return
  const zone = machineZone()
  const given = [at, anchor, end === 'none' ? undefined : end].filter((text) => text !== undefined)
  const local = given.filter((text) => parseInstant(text, zone).isLocal)
  const are = local.length === 1 ? 'is' : 'are'
  if (local.length > 0) note(`${local.join(' and ')} ${are} taken as the time in ${zone}, the machine's zone`)
  if (cron !== undefined) note(`without --tz the times are those of ${zone}, the machine's zone`)
}

const neverComes = () =>
  new HoldfastError('usage/schedule', 'it would never come: no instant lies ahead', {
    remedy: 'look at --until; --dry-run shows what comes',
  })

const nameTaken = ({ name, rule, state }: Schedule) =>
  new HoldfastError('schedules/name-taken', `"${name}" is ${state} already: ${describeWhen(rule)}`, {
    remedy: `change it with \`holdfast schedule edit ${name}\`, or choose another name`,
  })

export const isOver = ({ name, state, reason }: Schedule) =>
  new HoldfastError('schedules/over', `${name} is ${state}${reason === null ? '' : `: ${reason}`}`, {
    remedy: 'add a new one; the name is free',
  })

const SHOWN = 10

/** What would come, and nothing stored. */
function dryRun({ runtime, output }: Context, rule: Rule, options: ScheduleOptions, firings = 0): number {
  const now = runtime.clock.now()
  const zone = zoneOf(rule)
  const left = options.maxFirings === undefined ? SHOWN : Math.max(options.maxFirings - firings, 0)
  const instants = nextInstants(rule, now, Math.min(SHOWN, left)).filter((at) => until({ options }, at) !== undefined)
  const value = {
    rule: viewRule(rule),
    zone,
    instants: instants.map((at) => ({ at: new Date(at).toISOString(), local: localTime(at, zone) })),
  }
  const rows = instants.map((at) => [
    shownTime(at, zone),
    new Date(at).toISOString().replace('.000Z', 'Z'),
    fromNow(at, now),
  ])
  output.result(value, () =>
    instants.length === 0
      ? `${describeWhen(rule)}: nothing comes`
      : [
          `${describeWhen(rule)}: ${instants.length < SHOWN ? 'all that comes' : `the next ${SHOWN}`}; nothing is stored`,
          table([`TIME IN ${zone}`, 'UTC', 'FROM NOW'], rows),
        ].join('\n'),
  )
  return EXIT.done
}
