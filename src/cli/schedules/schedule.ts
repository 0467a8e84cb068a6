import { Option } from 'commander'
import type { Command } from 'commander'

import type { Answer } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { OCCURRENCE_STATES } from '../../schedule/occurrence.ts'
import type { OccurrenceState } from '../../schedule/occurrence.ts'
import { LIVE_SCHEDULES } from '../../schedule/schedule.ts'
import { ruleIn } from '../../schedule/view.ts'
import { shownTime, zoneOf } from '../../schedule/words.ts'
import { collect } from '../around/collect.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { countOption } from '../words/count-option.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { progress, table } from '../words/output.ts'
import { hasDaemon } from '../around/person.ts'
import { add, edit } from './schedule-add.ts'
import { afterDashes, withOptions, withRule, withTarget } from './schedule-flags.ts'
import type { ScheduleFlags } from './schedule-flags.ts'
import { askingRun } from './schedule-owner.ts'
import { remarksOn, show, stateOf } from './schedule-show.ts'
import { brief, describeState, describeTarget, describeWhen, nextOf } from './schedule-words.ts'
import { namedThread } from '../around/self.ts'
import type { OccurrenceView } from '../words/views.ts'
import { nextChange } from '../around/wait.ts'

export function addSchedules(schedule: Command, setExit: SetExit): void {
  const work: Work = (command, how) => withApi(command, how).then(setExit)
  // The agents that a schedule may be for are those of a configuration, too.
  addMaking(schedule, (command, how) => withApi(command, how, 'welcome').then(setExit))
  addLooking(schedule, work)
  addSteering(schedule, work)
}

type Work = (command: Command, how: (operator: Operator) => Promise<number>) => Promise<void>

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
      work(command, (operator) => add(operator, name, { all, afterDashes: afterDashes(command) }, flags)),
    )
  const editing = schedule
    .command('edit')
    .description('change a schedule, at once, also for a daemon that is running; what is not said stays')
    .argument('<schedule>', 'its name or id')
    .argument('[words...]', 'the command behind --, or the text of the message')
  withOptions(withTarget(withRule(editing)))
    .option('--dry-run', 'list the next ten instants of what it would be; change nothing')
    .action((name: string, all: string[], flags: ScheduleFlags, command: Command) =>
      work(command, (operator) => edit(operator, name, { all, afterDashes: afterDashes(command) }, flags)),
    )
}

function addLooking(schedule: Command, work: Work): void {
  schedule
    .command('list')
    .description('what comes next first; follow-ups are in `holdfast followup list`')
    .option('--all', 'also those that are over')
    .option('--owner <thread>', 'only those of this thread, or self')
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action((flags: ListFlags, command: Command) => work(command, (operator) => list(operator, flags)))
  schedule
    .command('show')
    .description('one schedule, its last and its next firings')
    .argument('<schedule>', 'its name or id')
    .action((name: string, _: unknown, command: Command) => work(command, (operator) => show(operator, name)))
  schedule
    .command('occurrences')
    .description('the ledger: every instant that came, newest first, what became of it and why')
    .argument('[schedule]', 'its name or id (default: of all)')
    .addOption(new Option('--state <state...>', 'only those in these states').choices(OCCURRENCE_STATES))
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action((name: string | undefined, flags: LedgerFlags, command: Command) =>
      work(command, (operator) => ledger(operator, name, flags)),
    )
}

function addSteering(schedule: Command, work: Work): void {
  schedule
    .command('pause')
    .description('nothing of it fires until it is resumed; what is at work goes on')
    .argument('<schedule>', 'its name or id')
    .option('--reason <text>', 'why, for the record')
    .action((name: string, flags: { reason?: string }, command: Command) =>
      work(command, (operator) => pause(operator, name, flags)),
    )
  schedule
    .command('resume')
    .description('it goes on with its next instant')
    .argument('<schedule>', 'its name or id')
    .action((name: string, _: unknown, command: Command) => work(command, (operator) => resume(operator, name)))
  schedule
    .command('run-now')
    .description('fire it by hand, also while it is paused; the next regular firing stays where it is')
    .argument('<schedule>', 'its name or id')
    .option('--key <key>', 'the same key is the same firing')
    .option('--wait', 'wait for its end')
    .action((name: string, flags: RunNowFlags, command: Command) =>
      work(command, (operator) => runNow(operator, name, flags)),
    )
  schedule
    .command('remove')
    .description('it never fires again; its history stays, what is at work goes on')
    .argument('<schedule>', 'its name or id')
    .option('--cancel', 'cancel what is at work')
    .action((name: string, flags: { cancel?: boolean }, command: Command) =>
      work(command, (operator) => remove(operator, name, flags.cancel === true)),
    )
}

interface ListFlags {
  readonly all?: boolean
  readonly owner?: string
  readonly limit: number
}

async function list(operator: Operator, { all, owner, limit }: ListFlags): Promise<number> {
  const { api, output, clock } = operator
  const asked = {
    kind: 'job',
    ...(all === true ? {} : { state: [...LIVE_SCHEDULES] }),
    ...(owner === undefined ? {} : { owner: await namedThread(operator, owner) }),
  } as const
  const found = await collect(api, 'schedules.list', asked, limit)
  const now = clock.now()
  output.result(found, () =>
    table(
      ['NAME', 'STATE', 'NEXT', 'WHEN', 'WHAT'],
      found.map((each) => [
        each.name,
        describeState(each),
        nextOf(each, now),
        describeWhen(each),
        describeTarget(each.target),
      ]),
      `no schedules${all === true ? '' : ' (--all has those that are over)'}`,
    ),
  )
  return EXIT.done
}

type LedgerLine = Answer<'occurrences.list'>['items'][number]

interface LedgerFlags {
  readonly state?: readonly OccurrenceState[]
  readonly limit: number
}

async function ledger({ api, output }: Operator, given: string | undefined, flags: LedgerFlags): Promise<number> {
  const asked = {
    ...(given === undefined ? {} : { schedule: given }),
    ...(flags.state === undefined ? {} : { state: [...flags.state] }),
  }
  const lines = await collect(api, 'occurrences.list', asked, flags.limit)
  output.result(lines.map(withoutSchedule), () =>
    table(
      ['SCHEDULE', 'DUE', 'STATE', 'REMARKS'],
      lines.map((line) => [
        brief(line.schedule.name, 40),
        shownTime(Date.parse(line.dueAt), line.schedule.zone),
        stateOf(line),
        remarksOn(line, line.schedule.zone),
      ]),
      'nothing came yet',
    ),
  )
  return EXIT.done
}

/** That is for tables: a program has the id. */
function withoutSchedule(line: LedgerLine): OccurrenceView {
  const { schedule: _, ...occurrence } = line
  return occurrence
}

async function pause(operator: Operator, given: string, { reason }: { readonly reason?: string }): Promise<number> {
  const asked = { schedule: given, ...askingRun(operator), ...(reason === undefined ? {} : { reason }) }
  const { already, ...paused } = await operator.api.call('schedules.pause', asked)
  const was = already === true ? ' was paused already' : ' is paused'
  operator.output.result(paused, () => `${paused.name}${was}: ${paused.reason ?? ''}`)
  return EXIT.done
}

async function resume(operator: Operator, given: string): Promise<number> {
  const asked = { schedule: given, ...askingRun(operator) }
  const { already, ...resumed } = await operator.api.call('schedules.resume', asked)
  const { name, nextAt, rule } = resumed
  const next = nextAt === undefined ? '' : `; next: ${shownTime(Date.parse(nextAt), zoneOf(ruleIn(rule)))}`
  operator.output.result(resumed, () => `${name} ${already === true ? 'was active already' : 'goes on'}${next}`)
  return EXIT.done
}

interface RunNowFlags {
  readonly key?: string
  readonly wait?: boolean
}

async function runNow(operator: Operator, given: string, { key, wait }: RunNowFlags): Promise<number> {
  const { api, output } = operator
  const schedule = await api.call('schedules.show', { schedule: given })
  const hasOne = await hasDaemon(operator)
  if (wait === true && !hasOne)
    throw new HoldfastError('daemon/none', 'no daemon is running that would carry it out', {
      remedy: 'start one with `holdfast up`, or leave --wait out',
    })
  const asked = { schedule: schedule.id, ...askingRun(operator), ...(key === undefined ? {} : { key }) }
  const fired = await api.call('schedules.run-now', asked)
  const occurrence = wait === true ? await untilSettled(operator, fired) : fired
  const remarks = remarksOn(occurrence, schedule.zone)
  output.result(occurrence, () => `${schedule.name} ${stateOf(occurrence)}${remarks === '' ? '' : `: ${remarks}`}`)
  if (!hasOne && occurrence.settledAt === undefined)
    output.note('it is stored, but no daemon is running: `holdfast up` will carry it out')
  if (occurrence.state === 'skipped') return EXIT.refused
  return occurrence.state === 'failed' || occurrence.state === 'dropped' ? EXIT.failed : EXIT.done
}

async function untilSettled(operator: Operator, { id }: OccurrenceView): Promise<OccurrenceView> {
  progress('waiting for its end')
  for (;;) {
    const changed = nextChange(operator, LIMITS.changePollMs * 2)
    const occurrence: OccurrenceView = await operator.api.call('occurrences.show', { occurrence: id })
    if (occurrence.settledAt !== undefined) {
      changed.forget()
      return occurrence
    }
    await changed.heard
  }
}

async function remove(operator: Operator, given: string, cancel: boolean): Promise<number> {
  const removed = await operator.api.call('schedules.remove', { schedule: given, cancel, ...askingRun(operator) })
  operator.output.result(removed, () => `${removed.name} is removed; its history stays`)
  return EXIT.done
}
