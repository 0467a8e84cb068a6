import type { Command } from 'commander'

import type { Answer } from '../../api/routes.ts'
import { LIMITS } from '../../base/limits.ts'
import { machineZone } from '../../base/zone.ts'
import { fromNow, shownTime } from '../../schedule/words.ts'
import { collect } from '../around/collect.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { countOption } from '../words/count-option.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { table } from '../words/output.ts'
import { hasDaemon } from '../around/person.ts'
import { instantsHere, noteZone } from './schedule-add.ts'
import { whenOf, withWhen } from './schedule-flags.ts'
import type { WhenFlags } from './schedule-flags.ts'
import { askedBy, askingRun } from './schedule-owner.ts'
import { describeTarget, describeWhen, nextOf } from './schedule-words.ts'
import { namedThread } from '../around/self.ts'
import type { ScheduleView } from '../words/views.ts'

export function addFollowups(followup: Command, setExit: SetExit): void {
  const work = (command: Command, how: (operator: Operator) => Promise<number>) => withApi(command, how).then(setExit)
  withWhen(
    followup
      .command('add')
      .description('a message to a thread, after a delay or at an instant')
      .argument('<thread>', 'a thread, or self')
      .argument('<text...>', 'what it is told'),
  )
    .option('--tz <zone>', "IANA zone of --at without an offset (default: the machine's)")
    .option('--reason <text>', 'why, which it is told too')
    .action((thread: string, words: string[], flags: AddFlags, command: Command) =>
      work(command, (operator) => add(operator, thread, words.join(' '), flags)),
    )
  followup
    .command('list')
    .description('what comes next first')
    .argument('[thread]', 'only those to this thread, or self (default: all)')
    .option('--all', 'also those that came or were cancelled')
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action((thread: string | undefined, flags: ListFlags, command: Command) =>
      work(command, (operator) => list(operator, thread, flags)),
    )
  followup
    .command('cancel')
    .description('it does not come')
    .argument('<followup>', 'its id')
    .action((id: string, _: unknown, command: Command) => work(command, (operator) => cancel(operator, id)))
}

type AddFlags = WhenFlags & { readonly reason?: string }

async function add(operator: Operator, given: string, text: string, flags: AddFlags): Promise<number> {
  const { api, output } = operator
  const { in: delay, at, zone } = whenOf(instantsHere(operator, flags))
  const added = await api.call('followups.add', {
    threadId: await namedThread(operator, given),
    text,
    ...(delay === undefined ? {} : { in: delay }),
    ...(at === undefined ? {} : { at }),
    ...(zone === undefined ? {} : { zone }),
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
    ...(await askedBy(operator)),
  })
  noteZone(operator, flags)
  report(operator, added)
  if (!(await hasDaemon(operator)))
    output.note('it is stored, but no daemon is running: nothing comes before `holdfast up`')
  return EXIT.done
}

function report({ output, clock }: Operator, added: Answer<'followups.add'>): void {
  const { id, nextAt, replaced } = added
  const at = nextAt === undefined ? undefined : Date.parse(nextAt)
  output.result(added, () =>
    [id, ...(at === undefined ? [] : [shownTime(at, machineZone()), `(${fromNow(at, clock.now())})`])].join(' '),
  )
  if (replaced !== undefined)
    output.note(
      `it takes the place of ${replaced.id}, which this run asked for before: ${describeTarget(replaced.target)}`,
    )
}

interface ListFlags {
  readonly all?: boolean
  readonly limit: number
}

async function list(operator: Operator, given: string | undefined, { all, limit }: ListFlags): Promise<number> {
  const { api, output, clock } = operator
  const asked = {
    ...(given === undefined ? {} : { thread: await namedThread(operator, given) }),
    ...(all === true ? ({ all: 'true' } as const) : {}),
  }
  const found = await collect(api, 'followups.list', asked, limit)
  const now = clock.now()
  output.result(found, () =>
    found.length === 0 ? `no follow-ups${all === true ? '' : ' to come'}` : followupTable(found, now),
  )
  return EXIT.done
}

export function followupTable(schedules: readonly ScheduleView[], now: number): string {
  return table(
    ['ID', 'STATE', 'WHEN', 'FROM NOW', 'WHAT'],
    schedules.map((each) => [
      each.kind === 'followup' ? each.id : each.name,
      each.state,
      each.rule.kind === 'once' ? shownTime(Date.parse(each.rule.at), machineZone()) : describeWhen(each),
      nextOf(each, now),
      describeTarget(each.target),
    ]),
  )
}

async function cancel(operator: Operator, given: string): Promise<number> {
  const cancelled = await operator.api.call('followups.cancel', { followup: given, ...askingRun(operator) })
  operator.output.result(cancelled, () => `${cancelled.id} does not come`)
  return EXIT.done
}
