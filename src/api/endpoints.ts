import type { Endpoint } from './endpoint.ts'

/**
 * Every door of the HTTP API, as data: the server routes by it, checks tokens by it and describes itself by it; the client
 * finds its way by it. What goes in and what comes out is in `routes.ts`, under the same names; this half is plain data, so
 * that a page and a command can use it without loading a schema library.
 */
export const ENDPOINTS = {
  health: { method: 'GET', path: '/health', scope: 'nobody', summary: 'whether the daemon answers' },
  openapi: { method: 'GET', path: '/openapi.json', scope: 'anybody', summary: 'this document' },

  // Signing in.
  'session.open': {
    method: 'POST',
    path: '/session',
    scope: 'nobody',
    summary: 'exchange a single-use code, or a token, for the cookie of a browser',
  },
  'session.show': { method: 'GET', path: '/session', scope: 'anybody', summary: 'who you are, and what you may do' },
  'session.close': { method: 'POST', path: '/session/close', scope: 'anybody', summary: 'sign out this browser' },
  'session.code': {
    method: 'POST',
    path: '/session/code',
    scope: 'admin',
    status: 201,
    summary: 'a single-use code that signs a browser in',
  },
  'tokens.list': { method: 'GET', path: '/tokens', scope: 'admin', summary: 'tokens and browsers that are signed in' },
  'tokens.create': {
    method: 'POST',
    path: '/tokens',
    scope: 'admin',
    status: 201,
    summary: 'a token with a scope; its text is shown this once',
  },
  'tokens.revoke': { method: 'POST', path: '/tokens/:token/revoke', scope: 'admin', summary: 'end a token at once' },

  // What is going on.
  status: { method: 'GET', path: '/status', scope: 'read', summary: 'counts, daemons, what needs a person' },
  'agents.list': { method: 'GET', path: '/agents', scope: 'read', summary: 'who can be talked to' },
  series: { method: 'GET', path: '/series', scope: 'read', summary: 'ended runs, tokens and cost over time' },
  metrics: { method: 'GET', path: '/metrics', scope: 'read', answers: 'text/plain', summary: 'for Prometheus' },
  events: {
    method: 'GET',
    path: '/events',
    scope: 'read',
    answers: 'text/event-stream',
    summary: 'what happens, as it happens, after any sequence number',
  },
  'events.list': { method: 'GET', path: '/events/log', scope: 'read', summary: 'what has happened, in pages' },

  'audit.list': { method: 'GET', path: '/audit', scope: 'read', summary: 'who did what, through which token' },

  // Threads and their inboxes.
  'threads.list': { method: 'GET', path: '/threads', scope: 'read', summary: 'the newest first, with the latest run' },
  'threads.show': {
    method: 'GET',
    path: '/threads/:thread',
    scope: 'read',
    own: true,
    summary: 'a thread with its runs, conversation, actions, messages and children',
  },
  'threads.conversation': {
    method: 'GET',
    path: '/threads/:thread/conversation',
    scope: 'read',
    own: true,
    summary: 'what was said, in pages, the newest first',
  },
  'threads.tree': {
    method: 'GET',
    path: '/threads/:thread/tree',
    scope: 'read',
    summary: 'a thread and those that it started, at any depth',
  },
  'threads.stop': {
    method: 'POST',
    path: '/threads/:thread/stop',
    scope: 'operate',
    summary: 'cancel what is under way, and give it no further turn until somebody writes to it',
  },
  'threads.resume': {
    method: 'POST',
    path: '/threads/:thread/resume',
    scope: 'operate',
    summary: 'a stopped thread takes turns again',
  },
  'threads.remove': {
    method: 'POST',
    path: '/threads/:thread/remove',
    scope: 'operate',
    summary: 'end a thread; what waits in its inbox becomes dead letters',
  },
  'messages.send': {
    method: 'POST',
    path: '/messages',
    scope: 'operate',
    own: true,
    status: 201,
    summary: 'a message to a thread, or to an agent in a new one; answered once it is stored',
  },
  'messages.list': { method: 'GET', path: '/messages', scope: 'read', summary: 'messages of all inboxes' },
  'messages.show': { method: 'GET', path: '/messages/:message', scope: 'read', summary: 'one, with its whole text' },
  'inbox.list': {
    method: 'GET',
    path: '/threads/:thread/inbox',
    scope: 'read',
    own: true,
    summary: 'what waits in an inbox, or what became of it; takes nothing',
  },
  'inbox.drain': {
    method: 'POST',
    path: '/threads/:thread/inbox/drain',
    scope: 'operate',
    own: true,
    summary: 'take what waits, as a delivery that comes back by itself unless it is acknowledged',
  },
  'inbox.ack': {
    method: 'POST',
    path: '/deliveries/:delivery/ack',
    scope: 'operate',
    own: true,
    summary: 'the messages of a delivery have been seen',
  },
  'inbox.release': {
    method: 'POST',
    path: '/deliveries/:delivery/release',
    scope: 'operate',
    own: true,
    summary: 'the messages of a delivery wait again',
  },
  'dead.list': { method: 'GET', path: '/dead-letters', scope: 'read', summary: 'what could not be delivered, and why' },
  'dead.show': { method: 'GET', path: '/dead-letters/:message', scope: 'read', summary: 'one of them' },
  'dead.retry': {
    method: 'POST',
    path: '/dead-letters/:message/retry',
    scope: 'operate',
    summary: 'put one back into the inbox',
  },
  'dead.purge': {
    method: 'POST',
    path: '/dead-letters/purge',
    scope: 'operate',
    summary: 'remove one for good, or all that are older',
  },

  // Runs and what they did.
  'runs.list': { method: 'GET', path: '/runs', scope: 'read', summary: 'the newest first' },
  'runs.show': { method: 'GET', path: '/runs/:run', scope: 'read', summary: 'a run with attempts, steps and actions' },
  'runs.cancel': {
    method: 'POST',
    path: '/runs/:run/cancel',
    scope: 'operate',
    summary: 'stop it for good: 200 it has ended, 202 its worker is stopping it',
  },
  'runs.disown': {
    method: 'POST',
    path: '/runs/:run/disown',
    scope: 'operate',
    summary: 'say that its worker, on a machine that cannot be reached, is dead: the run ends as lost',
  },
  'runs.events': { method: 'GET', path: '/runs/:run/events', scope: 'read', summary: 'what happened to it' },
  'runs.statement': {
    method: 'GET',
    path: '/runs/:run/statement',
    scope: 'read',
    summary: 'every effect that it had on the world',
  },
  'actions.list': { method: 'GET', path: '/actions', scope: 'read', summary: 'tool calls, the newest first' },
  'actions.show': { method: 'GET', path: '/actions/:action', scope: 'read', summary: 'one tool call' },
  'actions.again': {
    method: 'POST',
    path: '/actions/:action/again',
    scope: 'approve',
    summary: 'an identical call may be performed once more',
  },

  // What needs a person.
  'approvals.list': { method: 'GET', path: '/approvals', scope: 'read', summary: 'what waits for a yes or a no' },
  'approvals.show': {
    method: 'GET',
    path: '/approvals/:approval',
    scope: 'read',
    summary: 'one, with the exact bytes that would run',
  },
  'approvals.decide': {
    method: 'POST',
    path: '/approvals/:approval',
    scope: 'approve',
    summary: 'approve, skip or deny what has this digest',
  },
  'approvals.always': {
    method: 'POST',
    path: '/approvals/:approval/always',
    scope: 'approve',
    summary: 'approve, and make the rule that allows exactly this call from now on',
  },
  'approvals.edit': {
    method: 'POST',
    path: '/approvals/:approval/edit',
    scope: 'approve',
    summary: 'change the arguments; the changed call asks for a yes of its own',
  },
  'doubts.list': { method: 'GET', path: '/doubts', scope: 'read', summary: 'writes that may or may not have happened' },
  'doubts.show': { method: 'GET', path: '/doubts/:doubt', scope: 'read', summary: 'one, with what was seen of it' },
  'doubts.resolve': {
    method: 'POST',
    path: '/doubts/:doubt',
    scope: 'approve',
    summary: 'say what became of it; its run goes on at once',
  },

  // What runs did to files.
  'workspaces.list': {
    method: 'GET',
    path: '/workspaces',
    scope: 'read',
    summary: 'the git transactions of runs, the newest first',
  },
  'workspaces.report': {
    method: 'GET',
    path: '/workspace-report',
    scope: 'read',
    summary: 'what transactions would have landed and discarded, from what shadows saw',
  },
  'workspaces.show': {
    method: 'GET',
    path: '/workspaces/:run',
    scope: 'read',
    summary: 'one, with what changed, the check and what became of it',
  },
  'workspaces.diff': {
    method: 'GET',
    path: '/workspaces/:run/diff',
    scope: 'read',
    summary: 'what the work changes, also that of a discarded one',
  },
  'workspaces.land': {
    method: 'POST',
    path: '/workspaces/:run/land',
    scope: 'approve',
    summary: 'put work that is ready on its branch',
  },
  'workspaces.keep': {
    method: 'POST',
    path: '/workspaces/:run/keep',
    scope: 'approve',
    summary: 'keep the work under a branch of its own, for good',
  },
  'workspaces.discard': {
    method: 'POST',
    path: '/workspaces/:run/discard',
    scope: 'approve',
    summary: 'discard work that is ready or in quarantine; it can be brought back for a while',
  },
  'workspaces.retry': {
    method: 'POST',
    path: '/workspaces/:run/retry',
    scope: 'approve',
    summary: 'try once more what ended in quarantine',
  },

  // What comes by itself.
  'schedules.list': { method: 'GET', path: '/schedules', scope: 'read', summary: 'what comes next first' },
  'schedules.add': {
    method: 'POST',
    path: '/schedules',
    scope: 'operate',
    status: 201,
    summary: 'a job: once, at intervals or by cron; a command needs the scope admin, a webhook approve',
  },
  'schedules.preview': {
    method: 'POST',
    path: '/schedule-previews',
    scope: 'read',
    harmless: true,
    summary: 'the next ten instants of what would be; stores nothing',
  },
  'schedules.show': {
    method: 'GET',
    path: '/schedules/:schedule',
    scope: 'read',
    summary: 'one, with its last and its next firings',
  },
  'schedules.edit': {
    method: 'POST',
    path: '/schedules/:schedule',
    scope: 'operate',
    summary: 'change it at once; what is not said stays',
  },
  'schedules.pause': {
    method: 'POST',
    path: '/schedules/:schedule/pause',
    scope: 'operate',
    summary: 'nothing of it fires until it is resumed; what is at work goes on',
  },
  'schedules.resume': {
    method: 'POST',
    path: '/schedules/:schedule/resume',
    scope: 'operate',
    summary: 'it goes on with its next instant',
  },
  'schedules.run-now': {
    method: 'POST',
    path: '/schedules/:schedule/run-now',
    scope: 'operate',
    summary: 'fire it by hand; the next regular firing stays where it is',
  },
  'schedules.remove': {
    method: 'POST',
    path: '/schedules/:schedule/remove',
    scope: 'operate',
    summary: 'it never fires again; its history stays',
  },
  'occurrences.list': {
    method: 'GET',
    path: '/occurrences',
    scope: 'read',
    summary: 'every instant that came, newest first, and what became of it',
  },
  'occurrences.show': { method: 'GET', path: '/occurrences/:occurrence', scope: 'read', summary: 'one of them' },
  'followups.list': {
    method: 'GET',
    path: '/followups',
    scope: 'read',
    summary: 'messages to threads that come later',
  },
  'followups.add': {
    method: 'POST',
    path: '/followups',
    scope: 'operate',
    status: 201,
    summary: 'a message to a thread, after a delay or at an instant',
  },
  'followups.cancel': {
    method: 'POST',
    path: '/followups/:followup/cancel',
    scope: 'operate',
    summary: 'it does not come',
  },

  // How it is set up.
  'quotas.list': { method: 'GET', path: '/quotas', scope: 'read', summary: 'accounts whose provider said to wait' },
  'breakers.list': { method: 'GET', path: '/breakers', scope: 'read', summary: 'agents whose credentials are refused' },
  'policy.list': { method: 'GET', path: '/policy', scope: 'read', summary: 'the rules in force, and who made them' },
  'policy.check': { method: 'GET', path: '/policy/check', scope: 'read', summary: 'rules that can never decide' },
  'policy.explain': {
    method: 'POST',
    path: '/policy/explain',
    scope: 'read',
    harmless: true,
    summary: 'what an action would get, and why',
  },
  'policy.remove': {
    method: 'POST',
    path: '/policy/rules/:rule/remove',
    scope: 'approve',
    summary: 'take back a rule that somebody made by saying always',
  },
  'hooks.status': { method: 'GET', path: '/hooks/status', scope: 'read', summary: 'which clients report to us' },
  'hooks.hear': {
    method: 'POST',
    path: '/hooks',
    scope: 'record',
    summary: "an event of a client's session, from our own command",
  },
  'hooks.client': {
    method: 'POST',
    path: '/hooks/:client',
    scope: 'record',
    summary: 'an event as a client sends it by itself; the answer is what its hook would print',
  },
} as const satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof ENDPOINTS
export const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as EndpointName[]

/** The parts of a path that its caller fills in. */
export const partsOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
