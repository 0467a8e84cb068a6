import type { EndpointName } from '../api/endpoints.ts'
import { partsOf, ENDPOINTS } from '../api/endpoints.ts'
import type { Api } from '../api/client.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { Desk } from './desk.ts'
import type { Caller, House } from './desk.ts'

/** What only a server has: sockets, cookies, streams. */
export type ServersOwn =
  | 'health'
  | 'openapi'
  | 'metrics'
  | 'events'
  | 'hooks.hear'
  | 'hooks.client'
  | Extract<EndpointName, `session.${string}`>

export type Handled = Exclude<EndpointName, ServersOwn>

type Handlers = { readonly [N in Handled]: (desk: Desk, ask: Ask<N>) => Promise<Answer<N>> }

/** A function of a module that is loaded when it is first called: a command on the same machine calls one or two of them. */
const of =
  <M>(load: () => Promise<M>) =>
  <N extends keyof M & string>(name: N): M[N] =>
    (async (...given: unknown[]) => ((await load())[name] as (...all: unknown[]) => unknown)(...given)) as M[N]

const decisions = of(() => import('./decisions.ts'))
const followups = of(() => import('./followups.ts'))
const house = of(() => import('./house.ts'))
const inbox = of(() => import('./inbox.ts'))
const planning = of(() => import('./planning.ts'))
const policy = of(() => import('./policy.ts'))
const report = of(() => import('./workspace-report.ts'))
const runs = of(() => import('./runs.ts'))
const schedules = of(() => import('./schedules.ts'))
const silent = of(() => import('./silent.ts'))
const threads = of(() => import('./threads.ts'))
const tokens = of(() => import('./tokens.ts'))
const workspaces = of(() => import('./workspaces.ts'))

/** What each endpoint does. The server answers with it, and a command on the same machine asks it directly. */
export const HANDLERS: Handlers = {
  'tokens.list': tokens('list'),
  'tokens.create': tokens('create'),
  'tokens.revoke': tokens('revoke'),
  status: house('status'),
  'agents.list': house('agents'),
  series: house('series'),
  'events.list': house('events'),
  'audit.list': house('acts'),
  'threads.list': threads('list'),
  'threads.show': threads('show'),
  'threads.conversation': threads('conversation'),
  'threads.tree': threads('tree'),
  'threads.stop': threads('stop'),
  'threads.resume': threads('resume'),
  'threads.remove': threads('remove'),
  'messages.send': threads('send'),
  'messages.list': inbox('listAll'),
  'messages.show': inbox('show'),
  'inbox.list': inbox('list'),
  'inbox.drain': inbox('drain'),
  'inbox.ack': inbox('acknowledge'),
  'inbox.release': inbox('release'),
  'dead.list': inbox('listDead'),
  'dead.show': inbox('showDead'),
  'dead.retry': inbox('retry'),
  'dead.purge': inbox('purge'),
  'runs.list': runs('list'),
  'runs.show': runs('show'),
  'runs.cancel': runs('cancel'),
  'runs.disown': silent('disown'),
  'runs.events': runs('events'),
  'runs.statement': runs('statement'),
  'actions.list': runs('listCalls'),
  'actions.show': runs('showCall'),
  'actions.again': runs('again'),
  'approvals.list': decisions('listAsked'),
  'approvals.show': decisions('showAsked'),
  'approvals.decide': decisions('decide'),
  'approvals.always': decisions('always'),
  'approvals.edit': decisions('edit'),
  'doubts.list': decisions('listDoubts'),
  'doubts.show': decisions('showDoubt'),
  'doubts.resolve': decisions('resolve'),
  'workspaces.list': workspaces('list'),
  'workspaces.report': report('report'),
  'workspaces.show': workspaces('show'),
  'workspaces.diff': workspaces('diff'),
  'workspaces.land': workspaces('land'),
  'workspaces.keep': workspaces('keep'),
  'workspaces.discard': workspaces('discard'),
  'workspaces.retry': workspaces('retry'),
  'schedules.list': schedules('list'),
  'schedules.add': planning('add'),
  'schedules.preview': planning('preview'),
  'schedules.show': schedules('show'),
  'schedules.edit': planning('edit'),
  'schedules.pause': schedules('pause'),
  'schedules.resume': schedules('resume'),
  'schedules.run-now': schedules('runNow'),
  'schedules.remove': schedules('remove'),
  'occurrences.list': schedules('ledger'),
  'occurrences.show': schedules('showOccurrence'),
  'followups.list': followups('list'),
  'followups.add': followups('add'),
  'followups.cancel': followups('cancel'),
  'quotas.list': house('quotas'),
  'breakers.list': house('breakers'),
  'policy.list': policy('list'),
  'policy.check': policy('check'),
  'policy.explain': policy('explain'),
  'policy.remove': policy('remove'),
  'hooks.status': house('hookStatus'),
}

const isHandled = (name: EndpointName): name is Handled => name in HANDLERS

/** Does what the caller asks for. Whether they may is for the door. */
export function handle<N extends Handled>(place: House, who: Caller, name: N, ask: Ask<N>): Promise<Answer<N>> {
  const [part] = partsOf(ENDPOINTS[name].path)
  const on = part === undefined ? undefined : (ask as Readonly<Record<string, string>>)[part]
  return HANDLERS[name](new Desk(place, who, name, on), ask)
}

/** The operator's side of a store that this process has open itself. */
export const localApi = (place: House, who: Caller): Api => ({
  call<N extends EndpointName>(name: N, ask: Ask<N>): Promise<Answer<N>> {
    if (!isHandled(name)) throw new Error(`${name} is for a daemon`)
    return handle(place, who, name, ask as never)
  },
})
