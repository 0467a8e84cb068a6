import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { newScheduleId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { machineZone } from '../base/zone.ts'
import { theSchedule } from '../control/find.ts'
import { isOver as isEnded, removeSchedule } from '../schedule/edit.ts'
import { AGENT_FOLLOWUPS, addFollowup } from '../schedule/followup.ts'
import type { AddedFollowup, NewFollowup } from '../schedule/followup.ts'
import { messageTo } from '../schedule/request.ts'
import { LIVE_SCHEDULES, listSchedules } from '../schedule/schedule.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { ruleIn, viewSchedule } from '../schedule/view.ts'
import type { Thread } from '../threads/thread.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { countOption } from './count-option.ts'
import { EXIT } from './exit-code.ts'
import type { SetExit } from './main.ts'
import { table } from './output.ts'
import { isOver, readWhen } from './schedule-add.ts'
import { withWhen } from './schedule-flags.ts'
import type { WhenFlags } from './schedule-flags.ts'
import { hasDaemon, maker, ownerOf } from './schedule-owner.ts'
import { describeTarget, describeWhen, fromNow, nextOf, shownTime } from './schedule-words.ts'
import { threadOrSelf } from './self.ts'
import type { ScheduleView } from './views.ts'

export function addFollowups(program: Command, setExit: SetExit): void {
  const followup = program.command('followup').description('messages that come to a thread later, once')
  const work = (command: Command, how: (context: Context) => Promise<number>) =>
    withRuntime(command, how, 'welcome').then(setExit)
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
      work(command, (context) => add(context, thread, words.join(' '), flags)),
    )
  followup
    .command('list')
    .description('what comes next first')
    .argument('[thread]', 'only those to this thread, or self (default: all)')
    .option('--all', 'also those that came or were cancelled')
    .option('--limit <count>', 'how many', countOption, LIMITS.page)
    .action((thread: string | undefined, flags: ListFlags, command: Command) =>
      work(command, (context) => list(context, thread, flags)),
    )
  followup
    .command('cancel')
    .description('it does not come')
    .argument('<followup>', 'its id')
    .action((id: string, _: unknown, command: Command) => work(command, (context) => cancel(context, id)))
}

type AddFlags = WhenFlags & { readonly reason?: string }

async function add(context: Context, given: string, text: string, flags: AddFlags): Promise<number> {
  const { runtime, output } = context
  const rule = readWhen(context, flags)
  const thread = await threadOrSelf(context, given)
  const { text: prompt } = messageTo(thread, text)
  const added = await runtime.store.apply(addFollowup, {
    id: newScheduleId(runtime.random),
    threadId: thread.id,
    when: rule.kind === 'in' ? { delayMs: rule.delayMs } : { at: (rule as { readonly at: number }).at },
    prompt,
    madeBy: maker(context),
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
    ...(await askerOf(context, thread)),
  })
  if (added.kind === 'unknown-thread')
    throw new HoldfastError('not-found/thread', `the thread ${thread.id} was removed`, { remedy: 'name another one' })
  if (added.kind === 'past')
    throw new HoldfastError('usage/schedule', 'that instant has passed', { remedy: 'name one that lies ahead' })
  if (added.kind === 'limit') throw tooMany(added)
  report(context, added.schedule, added.replaced)
  if (!(await hasDaemon(context)))
    output.note('it is stored, but no daemon is running: nothing comes before `holdfast up`')
  return EXIT.done
}

/**
 * An agent has its bounds here too. Those of a run to its own thread replace each other; what it asks for elsewhere has nothing
 * to do with them.
 */
async function askerOf(context: Context, thread: Thread): Promise<Pick<NewFollowup, 'owner' | 'limits'>> {
  const { owner } = await ownerOf(context)
  if (owner === undefined) return {}
  const { threadId, agent } = owner
  return { owner: threadId === thread.id ? owner : { threadId, agent }, limits: AGENT_FOLLOWUPS }
}

const tooMany = ({ limit, value }: Extract<AddedFollowup, { kind: 'limit' }>) =>
  limit === 'pending'
    ? new HoldfastError('schedules/limit', `${value} follow-ups of this thread are pending already`, {
        remedy: 'cancel one with `holdfast followup cancel`',
      })
    : new HoldfastError('schedules/limit', `this thread has asked for ${value} follow-ups within a day`, {
        remedy: 'that many is a loop; wait, or let a person look',
      })

function report({ runtime, output }: Context, schedule: Schedule, replaced: Schedule | undefined): void {
  const { id, nextAt } = schedule
  const value = { ...viewSchedule(schedule), ...(replaced === undefined ? {} : { replaced: viewSchedule(replaced) }) }
  output.result(value, () =>
    [
      id,
      ...(nextAt === null ? [] : [shownTime(nextAt, machineZone()), `(${fromNow(nextAt, runtime.clock.now())})`]),
    ].join(' '),
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

async function list(context: Context, given: string | undefined, { all, limit }: ListFlags): Promise<number> {
  const { runtime, output } = context
  const found = await runtime.store.read(listSchedules, {
    kind: 'followup',
    limit,
    ...(all === true ? {} : { states: LIVE_SCHEDULES }),
    ...(given === undefined ? {} : { targetThread: (await threadOrSelf(context, given)).id }),
  })
  const now = runtime.clock.now()
  const views = found.map(viewSchedule)
  output.result(views, () =>
    views.length === 0 ? `no follow-ups${all === true ? '' : ' to come'}` : followupTable(views, now),
  )
  return EXIT.done
}

export function followupTable(schedules: readonly ScheduleView[], now: number): string {
  return table(
    ['ID', 'STATE', 'WHEN', 'FROM NOW', 'WHAT'],
    schedules.map((each) => [
      each.kind === 'followup' ? each.id : each.name,
      each.state,
      each.rule.kind === 'once' ? shownTime(Date.parse(each.rule.at), machineZone()) : describeWhen(ruleIn(each.rule)),
      nextOf({ ...each, nextAt: each.nextAt === undefined ? null : Date.parse(each.nextAt) }, now),
      describeTarget(each.target),
    ]),
  )
}

async function cancel(context: Context, given: string): Promise<number> {
  const { runtime, output } = context
  const found = await theSchedule(runtime.store, given)
  if (found.kind !== 'followup')
    throw new HoldfastError('not-found/schedule', `${found.name} is no follow-up`, {
      remedy: `\`holdfast schedule remove ${found.name}\` takes a schedule away`,
    })
  // Of one that has come already nothing can be taken back.
  if (found.nextAt === null || isEnded(found)) throw isOver(found)
  const removed = await runtime.store.apply(removeSchedule, found.id, maker(context), false, 'cancelled')
  if (removed.kind !== 'removed') throw isOver(found)
  output.result(viewSchedule(removed.schedule), () => `${found.id} does not come`)
  return EXIT.done
}
