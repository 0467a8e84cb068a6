import { iso } from '../base/clock.ts'
import { countMatters } from '../actions/desk.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { eventPage } from '../events/event.ts'
import { forgottenThrough } from '../events/retention.ts'
import { blockedQuotas } from '../model/quota.ts'
import { judgeProcess } from '../processes/identity.ts'
import { allBreakers, openBreakers } from '../runs/breaker.ts'
import { countRuns, listRuns } from '../runs/run.ts'
import { endedInSlots } from '../runs/series.ts'
import { viewEvent, viewRun } from '../runs/view.ts'
import { liveDaemons } from '../runs/worker.ts'
import { countSchedules, troubledSchedules } from '../schedule/trouble.ts'
import { viewSchedule } from '../schedule/view.ts'
import { countWakes } from '../sessions/wake.ts'
import { listActs } from '../tokens/act.ts'
import { countMessages } from '../threads/message.ts'
import type { Desk } from './desk.ts'
import { theThread } from './find.ts'
import { filled, paged } from './page.ts'
import { silentRuns } from './silent.ts'
import { waitingOnes } from './workspaces.ts'

/** What is going on, over all of it. */

const SHOWN = 20

export async function status(desk: Desk): Promise<Answer<'status'>> {
  const { store, home } = desk.runtime
  const daemons = (await desk.read(liveDaemons, null)).filter(({ identity }) => judgeProcess(identity) !== 'dead')
  const wakes = await desk.read(countWakes)
  const workspaces = await waitingOnes(desk)
  const active = await desk.read(listRuns, { states: ['running', 'parked', 'queued'], limit: SHOWN })
  return {
    home,
    engine: store.engine,
    daemons: daemons.map(({ id, home: folder, identity: { host, pid } }) => ({ id, home: folder, host, pid })),
    runs: counted(await desk.read(countRuns)),
    messages: counted(await desk.read(countMessages)),
    wakes: { total: wakes.wakes, vain: wakes.vain },
    needsAPerson: { ...(await desk.read(countMatters)), workspaces: workspaces.need },
    schedules: counted(await desk.read(countSchedules)),
    workspaces: workspaces.all,
    troubledSchedules: (await desk.read(troubledSchedules, SHOWN)).map(viewSchedule),
    active: active.map((run) => viewRun(run)) as Answer<'status'>['active'],
    silentRuns: await silentRuns(desk),
    openBreakers: (await desk.read(openBreakers)).map(({ agent, cause, openUntil }) => ({
      agent,
      cause,
      openUntil: iso(openUntil ?? 0),
    })),
  }
}

const counted = (counts: readonly { readonly state: string; readonly count: number }[]): Record<string, number> =>
  Object.fromEntries(counts.map(({ state, count }) => [state, count]))

export function agents(desk: Desk): Promise<Answer<'agents.list'>> {
  return Promise.resolve({ items: desk.runtime.agents.map((name) => ({ name })) })
}

const DAY_MS = 86_400_000

/** The last day by quarters of an hour, unless somebody wants to see something else. */
export async function series(desk: Desk, ask: Ask<'series'>): Promise<Answer<'series'>> {
  const to = instantOf(ask.to) ?? desk.runtime.clock.now()
  const from = instantOf(ask.from) ?? to - DAY_MS
  const bucketMs = ask.bucketMs ?? Math.max(1_000, Math.ceil((to - from) / 96))
  if (!(from < to) || (to - from) / bucketMs > LIMITS.seriesBuckets) {
    throw new HoldfastError('usage/request', 'that is no time that a chart can show', {
      remedy: `from is before to, with at most ${LIMITS.seriesBuckets} buckets between them`,
    })
  }
  const buckets = await desk.read(endedInSlots, from, to, bucketMs)
  return {
    from: iso(from),
    to: iso(to),
    bucketMs,
    items: buckets.map(({ slot, costMicrousd, ...counts }) => ({
      at: iso(slot * bucketMs),
      ...counts,
      costUsd: costMicrousd / 1_000_000,
    })),
  }
}

function instantOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const instant = Date.parse(given)
  if (Number.isFinite(instant)) return instant
  throw new HoldfastError('usage/request', `"${given}" is no time`, { remedy: 'as in 2026-01-31T12:00:00Z' })
}

export async function events(desk: Desk, ask: Ask<'events.list'>): Promise<Answer<'events.list'>> {
  const { limit = LIMITS.page, after, before, type, thread } = ask
  if (after !== undefined && before !== undefined) {
    throw new HoldfastError('usage/request', 'a page goes one way', { remedy: 'give after or before, not both' })
  }
  const threadId = thread === undefined ? undefined : (await theThread(desk.runtime.store, thread)).id
  const filter = { limit, ...filled({ after, before, types: type, threadId }) }
  const { events: found, next, last } = await desk.read(eventPage, filter, LIMITS.eventsLooked)
  const { eventsThrough } = await desk.read(forgottenThrough)
  const forgotten = after !== undefined && after < eventsThrough ? eventsThrough : undefined
  const items = found.map(viewEvent) as Answer<'events.list'>['items']
  return { items, ...filled({ next, forgottenThrough: forgotten }), seq: last }
}

export async function acts(desk: Desk, ask: Ask<'audit.list'>): Promise<Answer<'audit.list'>> {
  const { limit = LIMITS.page, after } = ask
  const found = await desk.read(listActs, limit, after)
  return paged(
    found.map(({ id, at, call, target, by, via, tokenId, outcome }) => ({
      id,
      at: iso(at),
      call,
      ...(target === null ? {} : { on: target }),
      by,
      via,
      ...(tokenId === null ? {} : { tokenId }),
      ...(outcome === null ? {} : { outcome }),
    })),
    limit,
  )
}

export async function quotas(desk: Desk): Promise<Answer<'quotas.list'>> {
  const blocked = await desk.read(blockedQuotas)
  return {
    items: blocked.map(({ quota, blockedUntil, reason }) => ({ quota, blockedUntil: iso(blockedUntil), reason })),
  }
}

export async function breakers(desk: Desk): Promise<Answer<'breakers.list'>> {
  const all = await desk.read(allBreakers)
  return {
    items: all.map(({ agent, cause, failures, openings, openUntil }) => ({
      agent,
      cause,
      failures,
      openings,
      ...(openUntil === null ? {} : { openUntil: iso(openUntil) }),
    })),
  }
}

export async function hookStatus({ house }: Desk): Promise<Answer<'hooks.status'>> {
  return { items: ((await house.hookStatus?.()) ?? []) as unknown as Answer<'hooks.status'>['items'] }
}
