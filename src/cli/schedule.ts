import { Option } from 'commander'
import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { newMessageId, newRunId, newThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { theSchedule } from '../control/find.ts'
import { pauseSchedule, removeSchedule, resumeSchedule } from '../schedule/edit.ts'
import { runNow as fireNow } from '../schedule/fire.ts'
import { OCCURRENCE_STATES, findOccurrence, listOccurrences } from '../schedule/occurrence.ts'
import type { Occurrence, OccurrenceState } from '../schedule/occurrence.ts'
import { LIVE_SCHEDULES, findSchedule, listSchedules } from '../schedule/schedule.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { viewSchedule } from '../schedule/view.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { countOption } from './count-option.ts'
import { EXIT } from './exit-code.ts'
import type { SetExit } from './main.ts'
import { progress, table } from './output.ts'
import { add, edit, isOver } from './schedule-add.ts'
import { afterDashes, withOptions, withRule, withTarget } from './schedule-flags.ts'
import type { ScheduleFlags } from './schedule-flags.ts'
import { hasDaemon, maker } from './schedule-owner.ts'
import { remarksOn, show, stateOf, viewLine, withRuns } from './schedule-show.ts'
import { brief, describeState, describeTarget, describeWhen, nextOf, shownTime, zoneOf } from './schedule-words.ts'
import { threadOrSelf } from './self.ts'
import { nextChange } from './wait.ts'

export function addSchedules(program: Command, setExit: SetExit): void {
  const schedule = program
    .command('schedule')
    .description('what comes by itself: once, at intervals or by cron, each firing with a line in the ledger')
  const work = (command: Command, how: (context: Context) => Promise<number>) =>
    withRuntime(command, how, 'welcome').then(setExit)
  addMaking(schedule, work)
  addLooking(schedule, work)
  addSteering(schedule, work)
}

type Work = (command: Command, how: (context: Context) => Promise<number>) => Promise<void>

function addMaking(schedule: Command, work: Work): void {
  const making = schedule
    .command('add')
    .description('add a schedule; --dry-run lists the next ten instants and stores nothing')
    .usage(
      'NAME (--in D | --at T | --every D | --cron "…" [--tz Z]) (-- CMD… | --thread T TEXT | --agent A TEXT | --webhook URL)',
    )
    .argument('<name>', 'what it is called; no other that is not over may have the name')
    .argument('[words...]', 'the command behind --, or the text of the message')
  withOptions(withTarget(withRule(making)))
    .option('--owner <thread>', 'who is told what becomes of it (default: the thread that this is called from)')
    .option('--dry-run', 'list the next ten instants, in its zone and in UTC; store nothing')
    .action((name: string, all: string[], flags: ScheduleFlags, command: Command) =>
      work(command, (context) => add(context, name, { all, afterDashes: afterDashes(command) }, flags)),
    )
  const editing = schedule
    .command('edit')
    .description('change a schedule, at once, also for a daemon that is running; what is not said stays')
    .argument('<schedule>', 'its name or id')
    .argument('[words...]', 'the command behind --, or the text of the message')
  withOptions(withTarget(withRule(editing)))
    .option('--dry-run', 'list the next ten instants of what it would be; change nothing')
    .action((name: string, all: string[], flags: ScheduleFlags, command: Command) =>
      work(command, (context) => edit(context, name, { all, afterDashes: afterDashes(command) }, flags)),
    )
}

function addLooking(schedule: Command, work: Work): void {
  schedule
    .command('list')
    .description('what comes next first; follow-ups are in `holdfast followup list`')
    .option('--all', 'also those that are over')
    .option('--owner <thread>', 'only those of this thread, or self')
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action((flags: ListFlags, command: Command) => work(command, (context) => list(context, flags)))
  schedule
    .command('show')
    .description('one schedule, its last and its next firings')
    .argument('<schedule>', 'its name or id')
    .action((name: string, _: unknown, command: Command) => work(command, (context) => show(context, name)))
  schedule
    .command('occurrences')
    .description('the ledger: every instant that came, newest first, what became of it and why')
    .argument('[schedule]', 'its name or id (default: of all)')
    .addOption(new Option('--state <state...>', 'only those in these states').choices(OCCURRENCE_STATES))
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action((name: string | undefined, flags: LedgerFlags, command: Command) =>
      work(command, (context) => ledger(context, name, flags)),
    )
}

function addSteering(schedule: Command, work: Work): void {
  schedule
    .command('pause')
    .description('nothing of it fires until it is resumed; what is at work goes on')
    .argument('<schedule>', 'its name or id')
    .option('--reason <text>', 'why, for the record')
    .action((name: string, flags: { reason?: string }, command: Command) =>
      work(command, (context) => pause(context, name, flags)),
    )
  schedule
    .command('resume')
    .description('it goes on with its next instant')
    .argument('<schedule>', 'its name or id')
    .action((name: string, _: unknown, command: Command) => work(command, (context) => resume(context, name)))
  schedule
    .command('run-now')
    .description('fire it by hand, also while it is paused; the next regular firing stays where it is')
    .argument('<schedule>', 'its name or id')
    .option('--key <key>', 'the same key is the same firing')
    .option('--wait', 'wait for its end')
    .action((name: string, flags: RunNowFlags, command: Command) =>
      work(command, (context) => runNow(context, name, flags)),
    )
  schedule
    .command('remove')
    .description('it never fires again; its history stays, what is at work goes on')
    .argument('<schedule>', 'its name or id')
    .option('--cancel', 'cancel what is at work')
    .action((name: string, flags: { cancel?: boolean }, command: Command) =>
      work(command, (context) => remove(context, name, flags.cancel === true)),
    )
}

interface ListFlags {
  readonly all?: boolean
  readonly owner?: string
  readonly limit: number
}

async function list(context: Context, { all, owner, limit }: ListFlags): Promise<number> {
  const { runtime, output } = context
  const found = await runtime.store.read(listSchedules, {
    kind: 'job',
    limit,
    ...(all === true ? {} : { states: LIVE_SCHEDULES }),
    ...(owner === undefined ? {} : { ownerThread: (await threadOrSelf(context, owner)).id }),
  })
  const now = runtime.clock.now()
  output.result(found.map(viewSchedule), () =>
    found.length === 0
      ? `no schedules${all === true ? '' : ' (--all has those that are over)'}`
      : table(
          ['NAME', 'STATE', 'NEXT', 'WHEN', 'WHAT'],
          found.map((each) => [
            each.name,
            describeState(each),
            nextOf(each, now),
            describeWhen(each.rule),
            describeTarget(each.target),
          ]),
        ),
  )
  return EXIT.done
}

interface LedgerFlags {
  readonly state?: readonly OccurrenceState[]
  readonly limit: number
}

async function ledger({ runtime, output }: Context, given: string | undefined, flags: LedgerFlags): Promise<number> {
  const { store } = runtime
  const only = given === undefined ? undefined : await theSchedule(store, given)
  const found = await store.read(listOccurrences, {
    limit: flags.limit,
    ...(only === undefined ? {} : { scheduleId: only.id }),
    ...(flags.state === undefined ? {} : { states: flags.state }),
  })
  const lines = await withRuns(store, found)
  const schedules = new Map<string, Schedule | undefined>()
  for (const { scheduleId } of found)
    if (!schedules.has(scheduleId)) schedules.set(scheduleId, only ?? (await store.read(findSchedule, scheduleId)))
  const nameOf = ({ scheduleId }: Occurrence) => brief(schedules.get(scheduleId)?.name ?? scheduleId, 40)
  const zone = ({ scheduleId }: Occurrence) => {
    const schedule = schedules.get(scheduleId)
    return schedule === undefined ? 'UTC' : zoneOf(schedule.rule)
  }
  output.result(lines.map(viewLine), () =>
    lines.length === 0
      ? 'nothing came yet'
      : table(
          ['SCHEDULE', 'DUE', 'STATE', 'REMARKS'],
          lines.map((line) => [
            nameOf(line.occurrence),
            shownTime(line.occurrence.dueAt, zone(line.occurrence)),
            stateOf(line),
            remarksOn(line, zone(line.occurrence)),
          ]),
        ),
  )
  return EXIT.done
}

async function pause(context: Context, given: string, { reason }: { readonly reason?: string }): Promise<number> {
  const { runtime, output } = context
  const schedule = await theSchedule(runtime.store, given)
  const paused = await runtime.store.apply(pauseSchedule, schedule.id, maker(context), reason)
  if (paused.kind === 'unknown' || paused.kind === 'over') throw isOver(schedule)
  const was = paused.kind === 'already' ? ' was paused already' : ' is paused'
  output.result(viewSchedule(paused.schedule), () => `${schedule.name}${was}: ${paused.schedule.reason ?? ''}`)
  return EXIT.done
}

async function resume(context: Context, given: string): Promise<number> {
  const { runtime, output } = context
  const schedule = await theSchedule(runtime.store, given)
  const resumed = await runtime.store.apply(resumeSchedule, schedule.id, maker(context))
  if (resumed.kind === 'unknown') throw isOver(schedule)
  if (resumed.kind === 'over') throw isOver(resumed.schedule)
  const { name, nextAt, rule } = resumed.schedule
  const next = nextAt === null ? '' : `; next: ${shownTime(nextAt, zoneOf(rule))}`
  output.result(viewSchedule(resumed.schedule), () => {
    return `${name} ${resumed.kind === 'already' ? 'was active already' : 'goes on'}${next}`
  })
  return EXIT.done
}

interface RunNowFlags {
  readonly key?: string
  readonly wait?: boolean
}

async function runNow(context: Context, given: string, { key, wait }: RunNowFlags): Promise<number> {
  const { runtime, output } = context
  const { random } = runtime
  const schedule = await theSchedule(runtime.store, given)
  const hasOne = await hasDaemon(context)
  if (wait === true && !hasOne)
    throw new HoldfastError('daemon/none', 'no daemon is running that would carry it out', {
      remedy: 'start one with `holdfast up`, or leave --wait out',
    })
  const ids = { threadId: newThreadId(random), runId: newRunId(random), messageId: newMessageId(random) }
  const fired = await runtime.store.apply(fireNow, schedule.id, key ?? random.hex(8), maker(context), ids)
  if (fired.kind !== 'begun') throw isOver(schedule)
  const occurrence = wait === true ? await untilSettled(context, fired.occurrence) : fired.occurrence
  const [line] = await withRuns(runtime.store, [occurrence])
  if (line === undefined) return EXIT.failed
  const remarks = remarksOn(line, zoneOf(schedule.rule))
  output.result(viewLine(line), () => `${schedule.name} ${stateOf(line)}${remarks === '' ? '' : `: ${remarks}`}`)
  if (!hasOne && occurrence.settledAt === null)
    output.note('it is stored, but no daemon is running: `holdfast up` will carry it out')
  if (occurrence.state === 'skipped') return EXIT.refused
  return occurrence.state === 'failed' || occurrence.state === 'dropped' ? EXIT.failed : EXIT.done
}

async function untilSettled({ runtime }: Context, { id }: Occurrence): Promise<Occurrence> {
  progress('waiting for its end')
  for (;;) {
    const changed = nextChange(runtime, LIMITS.changePollMs * 2)
    const occurrence = await runtime.store.read(findOccurrence, id)
    if (occurrence === undefined || occurrence.settledAt !== null) {
      changed.forget()
      if (occurrence !== undefined) return occurrence
      throw new HoldfastError('not-found/occurrence', `${id} is gone`, { remedy: 'its history was forgotten' })
    }
    await changed.heard
  }
}

async function remove(context: Context, given: string, cancel: boolean): Promise<number> {
  const { runtime, output } = context
  const schedule = await theSchedule(runtime.store, given)
  const removed = await runtime.store.apply(removeSchedule, schedule.id, maker(context), cancel)
  if (removed.kind !== 'removed') throw isOver(schedule)
  output.result(viewSchedule(removed.schedule), () => `${schedule.name} is removed; its history stays`)
  return EXIT.done
}
