import { findAction } from '../actions/action.ts'
import { findApproval } from '../actions/approval.ts'
import { iso } from '../base/clock.ts'
import type { Instant } from '../base/clock.ts'
import type { ActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { visibleLine } from '../base/visible.ts'
import type { Event } from '../events/event.ts'
import { findRun } from '../runs/run.ts'
import { row, text } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { first } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import { branchName } from '../workspace/view.ts'
import { findWorkspace } from '../workspace/workspace.ts'

/** What a person outside is told: what it is about and where to look. Never the arguments: they may be nobody else's. */
export interface Notice {
  readonly seq: number
  readonly at: string
  readonly kind: 'approval' | 'doubt' | 'breaker' | 'dead-letter' | 'schedule' | 'workspace'
  readonly title: string
  /** The command that shows it. */
  readonly command: string
  /** Where the dashboard settles it, behind its address: ASCII, whatever it is called. */
  readonly path: string
  readonly agent?: string
  readonly tool?: string
  readonly threadId?: string
  readonly runId?: string
  readonly approvalId?: string
  readonly actionId?: string
  readonly messageId?: string
}

/** Those that are of no use without a person. */
const DEAD_FOR_A_PERSON = ['unknown recipient', 'orphan', 'too large', 'expired']

const SAID: Readonly<Record<string, (event: Event) => Transition<Notice | undefined>>> = {
  'approval.requested': approvalNotice,
  'action.settled': doubtNotice,
  'breaker.opened': breakerNotice,
  'message.dead': letterNotice,
  'workspace.ready': workspaceNotice,
  'workspace.quarantined': workspaceNotice,
  'schedule.paused': pausedNotice,
}

/** What says by itself whom it needs: nobody can look up whether it still does, so only what is new is told. */
const SAID_AT_ONCE: Readonly<Record<string, (event: Event) => Notice | undefined>> = {
  'occurrence.settled': firingNotice,
}

/** Undefined: it needs nobody, or not any more; what was settled before anybody looked is not told. */
export function* noticeOf(event: Event, now: Instant): Transition<Notice | undefined> {
  const say = SAID[event.type]
  if (say !== undefined) return yield* say(event)
  return event.at > now - LIMITS.noticeNewsMs ? SAID_AT_ONCE[event.type]?.(event) : undefined
}

const nameIn = ({ data }: Event, key: string): string => (typeof data[key] === 'string' ? data[key] : '')

/** A place of the dashboard. */
const placeOf = (page: string, id: string): string => `/${page}/${encodeURIComponent(id.toWellFormed())}`

function about({ seq, at, threadId, runId }: Event) {
  return {
    seq,
    at: iso(at),
    ...(threadId === null ? {} : { threadId: visibleLine(threadId) }),
    ...(runId === null ? {} : { runId: visibleLine(runId) }),
  }
}

function* approvalNotice(event: Event): Transition<Notice | undefined> {
  const approval = yield* findApproval.single(nameIn(event, 'approvalId'))
  if (approval?.state !== 'pending') return undefined
  const agent = visibleLine((yield* findRun.single(approval.runId))?.agent ?? 'an agent')
  const tool = visibleLine(nameIn(event, 'tool'))
  return {
    ...about(event),
    kind: 'approval',
    title: `${agent} asks whether it may use ${tool}`,
    command: `holdfast approvals show ${approval.id}`,
    path: placeOf('approvals', approval.id),
    agent,
    tool,
    approvalId: approval.id,
    actionId: approval.actionId,
  }
}

function* doubtNotice(event: Event): Transition<Notice | undefined> {
  if (event.data['state'] !== 'in_doubt') return undefined
  const action = yield* findAction.single(nameIn(event, 'actionId') as ActionId)
  if (action?.state !== 'in_doubt' || action.givenUp !== null) return undefined
  const agent = visibleLine((yield* findRun.single(action.runId))?.agent ?? 'an agent')
  const tool = visibleLine(action.tool)
  return {
    ...about(event),
    kind: 'doubt',
    title: `${tool} of ${agent} was cut off: it may or may not have happened`,
    command: `holdfast doubts show ${action.id}`,
    path: placeOf('doubts', action.id),
    agent,
    tool,
    actionId: action.id,
  }
}

const openRow = row({ agent: text() })

function* breakerNotice(event: Event): Transition<Notice | undefined> {
  const name = nameIn(event, 'agent')
  const open = yield* first(
    openRow,
    sql`select agent from breakers where agent = ${name} and open_until is not null limit 1`,
  )
  if (open === undefined) return undefined
  const agent = visibleLine(name)
  const title = `${agent} is stopped: its provider refuses the credentials`
  return { ...about(event), kind: 'breaker', title, command: 'holdfast status', path: '/quotas', agent }
}

const deadRow = row({ id: text() })

function* letterNotice(event: Event): Transition<Notice | undefined> {
  const [id, reason] = [nameIn(event, 'messageId'), nameIn(event, 'reason')]
  if (!DEAD_FOR_A_PERSON.includes(reason)) return undefined
  const dead = yield* first(deadRow, sql`select id from messages where id = ${id} and state = 'dead'`)
  if (dead === undefined) return undefined
  const messageId = visibleLine(id)
  const title = `a message could not be delivered: ${reason}`
  const command = `holdfast inbox dead show ${messageId}`
  return { ...about(event), kind: 'dead-letter', title, command, path: placeOf('inbox', id), messageId }
}

/** Work that could not land by itself, or of which nobody can say what became of it. */
function* workspaceNotice(event: Event): Transition<Notice | undefined> {
  if (event.runId === null) return undefined
  const workspace = yield* findWorkspace.single(event.runId)
  if (workspace === undefined || `workspace.${workspace.state}` !== event.type) return undefined
  const agent = visibleLine(workspace.agent)
  const branch = visibleLine(branchName(workspace.branch))
  const title =
    workspace.state === 'ready'
      ? `work of ${agent} is ready and did not land on ${branch}`
      : `what became of the files of ${agent} cannot be proven`
  const command = `holdfast workspace show ${workspace.runId}`
  return { ...about(event), kind: 'workspace', title, command, path: placeOf('runs', workspace.runId), agent }
}

const scheduleOf = (event: Event) => placeOf('schedules', nameIn(event, 'scheduleId'))

const pausedRow = row({ id: text() })

/** Whoever owns it was told; where nobody does, a person is, as long as it is still paused for that. */
function* pausedNotice(event: Event): Transition<Notice | undefined> {
  if (event.data['by'] !== 'itself' || event.data['told'] !== 'operator') return undefined
  const paused = yield* first(
    pausedRow,
    sql`select id from schedules where id = ${nameIn(event, 'scheduleId')} and state = 'paused' and reason = ${nameIn(event, 'reason')}`,
  )
  if (paused === undefined) return undefined
  const name = visibleLine(nameIn(event, 'name'))
  const title = `the job ${name} is paused: ${visibleLine(nameIn(event, 'reason'))}`
  return {
    ...about(event),
    kind: 'schedule',
    title,
    command: `holdfast schedule show ${name}`,
    path: scheduleOf(event),
  }
}

function firingNotice(event: Event): Notice | undefined {
  if (event.data['told'] !== 'operator') return undefined
  const [name, state] = [visibleLine(nameIn(event, 'name')), visibleLine(nameIn(event, 'state'))]
  const title = `a firing of ${name} ${state === 'failed' ? 'failed' : 'was dropped'}: ${visibleLine(nameIn(event, 'reason'))}`
  const command = `holdfast schedule occurrences ${name}`
  return { ...about(event), kind: 'schedule', title, command, path: scheduleOf(event) }
}
