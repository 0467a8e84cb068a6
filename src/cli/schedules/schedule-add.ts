import type { Answer } from '../../api/routes.ts'
import { machineZone, parseInstant } from '../../base/zone.ts'
import { ruleIn } from '../../schedule/view.ts'
import { fromNow, shownTime, zoneOf } from '../../schedule/words.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { table } from '../words/output.ts'
import { hasDaemon } from '../around/person.ts'
import { optionsOf, whenOf } from './schedule-flags.ts'
import type { ScheduleFlags, WhenFlags } from './schedule-flags.ts'
import { askedBy, askingRun } from './schedule-owner.ts'
import { doingOf } from './schedule-target.ts'
import type { Words } from './schedule-target.ts'
import { describeTarget, describeWhen } from './schedule-words.ts'
import type { ScheduleView } from '../words/views.ts'

export async function add(operator: Operator, name: string, words: Words, flags: ScheduleFlags): Promise<number> {
  const { api, output } = operator
  const zone = flags.cron === undefined ? {} : zoneElsewhere(operator, flags)
  const asked = { name, ...(await askOf(operator, words, flags)), ...zone }
  if (flags.dryRun === true) return dryRun(operator, await api.call('schedules.preview', asked), flags)
  const added = await api.call('schedules.add', { ...asked, ...(await askedBy(operator, flags.owner)) })
  noteZone(operator, flags)
  report(operator, added, 'added')
  if (!(await hasDaemon(operator)))
    output.note('it is stored, but no daemon is running: nothing fires before `holdfast up`')
  return EXIT.done
}

export async function edit(operator: Operator, given: string, words: Words, flags: ScheduleFlags): Promise<number> {
  const { api } = operator
  const asked = { schedule: given, ...(await askOf(operator, words, flags)) }
  if (flags.dryRun === true) return dryRun(operator, await api.call('schedules.preview', asked), flags)
  const edited = await api.call('schedules.edit', { ...asked, ...askingRun(operator) })
  noteZone(operator, flags)
  report(operator, edited, 'changed')
  return EXIT.done
}

const askOf = async (operator: Operator, words: Words, flags: ScheduleFlags) => {
  const here = instantsHere(operator, flags)
  return { ...whenOf(here), ...optionsOf(here), ...(await doingOf(operator, words, flags)) }
}

/** A cron rule that was asked for here is in the zone of here, wherever the daemon is. */
const zoneElsewhere = ({ local }: Operator, { tz }: WhenFlags) =>
  local !== undefined || tz !== undefined ? {} : { zone: machineZone() }

/** A daemon elsewhere may be in another zone: times of here are sent as the instants that they are. */
export function instantsHere<Flags extends WhenFlags>({ local }: Operator, flags: Flags): Flags {
  if (local !== undefined || flags.tz !== undefined) return flags
  const known = (['at', 'anchor', 'until'] as const).flatMap((key) => {
    const given = flags[key]
    if (given === undefined || given === 'none') return []
    const { at, isLocal } = parseInstant(given, machineZone())
    return isLocal ? [[key, new Date(at).toISOString()]] : []
  })
  return { ...flags, ...Object.fromEntries(known) }
}

function report({ output, clock }: Operator, schedule: ScheduleView, what: string): void {
  const { name, target, nextAt } = schedule
  output.result(schedule, () =>
    [
      `${name} ${what}: ${describeWhen(schedule)}, ${describeTarget(target)}`,
      ...(nextAt === undefined ? [] : [`next: ${nextLine(schedule, nextAt, clock.now())}`]),
    ].join('\n'),
  )
}

const nextLine = ({ rule }: ScheduleView, nextAt: string, now: number) =>
  `${shownTime(Date.parse(nextAt), zoneOf(ruleIn(rule)))} (${fromNow(Date.parse(nextAt), now)})`

/** Times without a zone mean different instants on different machines. */
export function noteZone({ output }: Operator, { at, anchor, until: end, cron, tz }: WhenFlags): void {
  if (tz !== undefined) return
  const zone = machineZone()
  const given = [at, anchor, end === 'none' ? undefined : end].filter((text) => text !== undefined)
  const local = given.filter((text) => parseInstant(text, zone).isLocal)
  const are = local.length === 1 ? 'is' : 'are'
  if (local.length > 0) output.note(`${local.join(' and ')} ${are} taken as the time in ${zone}, the machine's zone`)
  if (cron !== undefined) output.note(`without --tz the times are those of ${zone}, the machine's zone`)
}

const SHOWN = 10

/** What would come, and nothing stored. */
function dryRun(operator: Operator, preview: Answer<'schedules.preview'>, flags: ScheduleFlags): number {
  const { output, clock } = operator
  const { zone, instants } = preview
  noteZone(operator, flags)
  const rows = instants.map(({ at }) => [
    shownTime(Date.parse(at), zone),
    at.replace('.000Z', 'Z'),
    fromNow(Date.parse(at), clock.now()),
  ])
  output.result(preview, () =>
    instants.length === 0
      ? `${describeWhen(preview)}: nothing comes`
      : [
          `${describeWhen(preview)}: ${instants.length < SHOWN ? 'all that comes' : `the next ${SHOWN}`}; nothing is stored`,
          table([`TIME IN ${zone}`, 'UTC', 'FROM NOW'], rows),
        ].join('\n'),
  )
  return EXIT.done
}
