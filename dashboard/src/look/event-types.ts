/** What the log of events can be narrowed to. */
export const ABOUT: readonly (readonly [string, string])[] = [
  ['', 'All'],
  ['run', 'Runs'],
  ['action', 'Actions'],
  ['approval', 'Decisions'],
  ['message', 'Messages'],
  ['operator', 'Operators'],
]

/** The log is asked for by whole types. That none was forgotten says test/tidy/events.test.ts. */
export const TYPES_ABOUT: Readonly<Record<string, readonly string[]>> = {
  run: [
    'run.queued',
    'run.started',
    'run.parked',
    'run.resumed',
    'run.cancel_requested',
    'run.taken_over',
    'run.handed_over',
    'run.requeued',
    'run.finished',
    'run.late_result',
    'run.traced',
  ],
  action: ['action.proposed', 'action.started', 'action.settled', 'action.released'],
  approval: ['approval.requested', 'approval.decided', 'approval.expired', 'doubt.resolved', 'policy.rule_added'],
  message: [
    'message.accepted',
    'message.leased',
    'message.returned',
    'message.consumed',
    'message.dead',
    'message.retried',
    'message.replaced',
    'message.purged',
  ],
  operator: ['operator.acted', 'token.created', 'token.revoked', 'policy.rule_added', 'policy.rule_removed'],
}
