import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { newScheduleId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { isOver as isEnded, removeSchedule } from '../schedule/edit.ts'
import { AGENT_FOLLOWUPS, addFollowup } from '../schedule/followup.ts'
import type { AddedFollowup, NewFollowup } from '../schedule/followup.ts'
import { messageTo } from '../schedule/request.ts'
import { LIVE_SCHEDULES, listSchedules } from '../schedule/schedule.ts'
import { viewSchedule } from '../schedule/view.ts'
import type { Thread } from '../threads/thread.ts'
import type { Desk } from './desk.ts'
import { theSchedule, theThread } from './find.ts'
import { filled, paged } from './page.ts'
import { ownerOf, readWhen } from './planning.ts'
import { isOver, maker } from './schedules.ts'

/** Messages that come to a thread later, once. */

export async function list(desk: Desk, ask: Ask<'followups.list'>): Promise<Answer<'followups.list'>> {
  const { limit = LIMITS.page, all } = ask
  const { store } = desk.runtime
  const found = await desk.read(listSchedules, {
    kind: 'followup',
    limit,
    ...filled({
      states: all === 'true' ? undefined : LIVE_SCHEDULES,
      after: ask.after === undefined ? undefined : (await theSchedule(store, ask.after)).id,
      targetThread: ask.thread === undefined ? undefined : (await theThread(store, ask.thread)).id,
    }),
  })
  return paged(found.map(viewSchedule), limit)
}

export async function add(desk: Desk, ask: Ask<'followups.add'>): Promise<Answer<'followups.add'>> {
  const rule = readWhen(desk, { in: ask.in, at: ask.at, zone: ask.zone })
  const thread = await theThread(desk.runtime.store, ask.threadId)
  const { text: prompt } = messageTo(thread, ask.text)
  const added = await desk.apply(addFollowup, {
    id: newScheduleId(desk.runtime.random),
    threadId: thread.id,
    when: rule.kind === 'in' ? { delayMs: rule.delayMs } : { at: (rule as { readonly at: number }).at },
    prompt,
    madeBy: maker(desk, ask),
    ...filled({ reason: ask.reason }),
    ...(await askerOf(desk, thread, ask)),
  })
  if (added.kind !== 'added') throw notAdded(added, thread)
  const { schedule, replaced } = added
  return { ...viewSchedule(schedule), ...(replaced === undefined ? {} : { replaced: viewSchedule(replaced) }) }
}

/**
 * An agent has its bounds here too. Those of a run to its own thread replace each other; what it asks for elsewhere has nothing
 * to do with them.
 */
async function askerOf(
  desk: Desk,
  thread: Thread,
  ask: Ask<'followups.add'>,
): Promise<Pick<NewFollowup, 'owner' | 'limits'>> {
  const owner = await ownerOf(desk, ask)
  if (owner === undefined) return {}
  const { threadId, agent } = owner
  return { owner: threadId === thread.id ? owner : { threadId, ...filled({ agent }) }, limits: AGENT_FOLLOWUPS }
}

function notAdded(answer: Exclude<AddedFollowup, { kind: 'added' }>, { id }: Thread): HoldfastError {
  if (answer.kind === 'unknown-thread')
    return new HoldfastError('not-found/thread', `the thread ${id} was removed`, { remedy: 'name another one' })
  if (answer.kind === 'past')
    return new HoldfastError('usage/schedule', 'that instant has passed', { remedy: 'name one that lies ahead' })
  return answer.limit === 'pending'
    ? new HoldfastError('schedules/limit', `${answer.value} follow-ups of this thread are pending already`, {
        remedy: 'cancel one with `holdfast followup cancel`',
      })
    : new HoldfastError('schedules/limit', `this thread has asked for ${answer.value} follow-ups within a day`, {
        remedy: 'that many is a loop; wait, or let a person look',
      })
}

export async function cancel(desk: Desk, ask: Ask<'followups.cancel'>): Promise<Answer<'followups.cancel'>> {
  const found = await theSchedule(desk.runtime.store, ask.followup)
  if (found.kind !== 'followup')
    throw new HoldfastError('not-found/schedule', `${found.name} is no follow-up`, {
      remedy: `\`holdfast schedule remove ${found.name}\` takes a schedule away`,
    })
  // Of one that has come already nothing can be taken back.
  if (found.nextAt === null || isEnded(found)) throw isOver(found)
  const removed = await desk.apply(removeSchedule, found.id, maker(desk, ask), false, 'cancelled')
  if (removed.kind !== 'removed') throw isOver(found)
  return viewSchedule(removed.schedule)
}
