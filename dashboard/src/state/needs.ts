import type { Approval, Doubt, Message, Schedule, Workspace } from '../api/shapes.ts'
import type { Answer } from '../api/client.ts'
import { ruleWords } from '../look/calendar.ts'
import { brief, many, shortId, visible } from '../look/words.ts'
import { useResource } from './resource.ts'
import { useSchedules } from './schedules.ts'

/** One thing that a person should look at. */
export interface Need {
  readonly key: string
  readonly to: string
  readonly state: string
  readonly what: string
  readonly about: string
  readonly agent: string
  readonly since: string
}

const ofApproval = ({ id, tool, input, agent, askedAt }: Approval): Need => ({
  key: id,
  to: `/approvals/${id}`,
  state: 'waiting',
  what: visible(tool),
  about: brief(input),
  agent: visible(agent),
  since: askedAt,
})

const ofDoubt = ({ id, tool, input, agent, startedAt, createdAt }: Doubt): Need => ({
  key: id,
  to: `/doubts/${id}`,
  state: 'in_doubt',
  what: visible(tool),
  about: brief(input),
  agent: visible(agent),
  since: startedAt ?? createdAt,
})

const ofLetter = ({ id, kind, reason, body, threadId, createdAt }: Message): Need => ({
  key: id,
  to: `/inbox/${id}`,
  state: 'dead',
  what: kind,
  about: `${visible(reason ?? '')} · ${brief(body)}`,
  agent: visible(shortId(threadId)),
  since: createdAt,
})

const ofSchedule = ({ id, name, reason, rule, updatedAt }: Schedule): Need => ({
  key: id,
  to: `/schedules/${id}`,
  state: 'paused',
  what: visible(name),
  about: visible(reason ?? ruleWords(rule)),
  agent: 'schedule',
  since: updatedAt,
})

const ofBreaker = (breaker: Answer<'breakers.list'>['items'][number]): Need => ({
  key: `breaker ${breaker.agent}`,
  to: '/quotas',
  state: 'stopped',
  what: visible(breaker.agent),
  about: `its provider refuses the credentials (${breaker.cause}); check its key`,
  agent: visible(breaker.agent),
  since: breaker.openUntil ?? '',
})

const ofWorkspace = ({ runId, state, reason, agent, branch, changedCount, openedAt, settledAt }: Workspace): Need => ({
  key: `workspace ${runId}`,
  to: `/runs/${runId}`,
  state,
  what: visible(branch),
  about: `${many(changedCount, 'file')}${reason === undefined ? '' : ` · ${visible(reason)}`}`,
  agent: visible(agent),
  since: settledAt ?? openedAt,
})

const ofSilent = ({ runId, agent, host, since }: Answer<'status'>['silentRuns'][number]): Need => ({
  key: `silent ${runId}`,
  to: `/runs/${runId}`,
  state: 'silent',
  what: visible(shortId(runId)),
  about: `its worker on ${visible(host)} is silent: start Holdfast there, or say that it is dead`,
  agent: visible(agent),
  since,
})

/** Of each kind so many are shown; a day with a hundred approvals must not hide the one dead letter. */
const SHOWN = 6

export interface NeedsOfAKind {
  readonly shown: readonly Need[]
  readonly more: { readonly to: string; readonly word: string } | undefined
  readonly count: number
}

function ofAKind(all: readonly Need[], to: string, one: string): NeedsOfAKind {
  const rest = all.length - SHOWN
  return {
    shown: all.slice(0, rest > 1 ? SHOWN : SHOWN + 1),
    more: rest > 1 ? { to, word: many(rest, `more ${one}`) } : undefined,
    count: all.length,
  }
}

/** What waits for somebody, by kind, oldest first: what comes is added at the end, and nothing moves. */
export function useNeeds(): readonly NeedsOfAKind[] | undefined {
  const schedules = useSchedules().data.value?.items ?? []
  const approvals = useResource('approvals.list', {}, ['approval.', 'run.finished']).data.value?.items
  const doubts = useResource('doubts.list', {}, ['action.settled', 'doubt.', 'run.finished']).data.value?.items
  const dead = useResource('dead.list', {}, ['message.']).data.value?.items ?? []
  const breakers = useResource('breakers.list', {}, ['breaker.']).data.value?.items ?? []
  const files = useResource('workspaces.list', { state: ['ready', 'quarantined'] }, ['workspace.']).data.value?.items
  const silent = useResource('status', {}, ['run.', 'approval.', 'doubt.', 'message.']).data.value?.silentRuns ?? []
  if (approvals === undefined || doubts === undefined) return undefined
  const paused = schedules.filter(({ state }) => state === 'paused')
  const open = breakers.filter(({ openUntil }) => openUntil !== undefined)
  return [
    ofAKind(approvals.map(ofApproval), '/approvals', 'approval'),
    ofAKind(doubts.map(ofDoubt), '/doubts', 'doubt'),
    ofAKind((files ?? []).toReversed().map(ofWorkspace), '/workspaces?state=ready,quarantined', 'workspace'),
    ofAKind(silent.map(ofSilent), '/runs?state=running', 'silent run'),
    ofAKind(dead.map(ofLetter), '/inbox', 'dead letter'),
    ofAKind(paused.map(ofSchedule), '/schedules', 'paused schedule'),
    ofAKind(open.map(ofBreaker), '/quotas', 'stopped agent'),
  ]
}
