import type { Owed } from './tidy/citations.ts'

/**
 * What Holdfast promises. A test proves a promise by citing its id in its title:
 * `test('a second finish does not overwrite the first [runs/one-terminal]', …)`.
 */
export const PROMISES: readonly Owed[] = [
  {
    id: 'actions/once',
    part: 3,
    due: true,
    text: 'An action takes effect at most once, whatever crashes. Where a tool says `repeat: once`, an identical call in a run is the same action and gets its result.',
  },
  {
    id: 'actions/independent',
    part: 3,
    due: true,
    text: 'A write that failed, was skipped, denied or expired never blocks a different one.',
  },
  {
    id: 'actions/no-blind-retry',
    part: 3,
    due: true,
    text: "A write cut off in the middle is in doubt: it is settled by the tool's own idempotency key, by its probe, or by a person; never silently run again, never silently dropped.",
  },
  {
    id: 'approvals/bound',
    part: 5,
    due: true,
    text: 'A decision covers exactly the bytes that were shown, once, until it expires; it is consumed in the transaction that starts the action.',
  },
  {
    id: 'runs/one-terminal',
    part: 1,
    due: true,
    text: "A run has one terminal state, won by compare-and-set. Only the winner's side effects happen.",
  },
  {
    id: 'runs/cancel-is-final',
    part: 1,
    due: true,
    text: 'A cancelled run is never reported, billed or announced as a success.',
  },
  {
    id: 'runs/fenced',
    part: 1,
    due: true,
    text: 'A worker that lost its claim (paused, partitioned, restarted) can change nothing.',
  },
  {
    id: 'runs/paid-work-kept',
    part: 1,
    due: true,
    text: 'A finished result is kept until it is recorded, whoever died in between; a result that came too late is kept beside the run, visible, never applied by itself.',
  },
  {
    id: 'inbox/never-lost',
    part: 4,
    due: true,
    text: 'A message that was accepted is delivered or is a visible dead letter with a reason.',
  },
  {
    id: 'inbox/effect-once',
    part: 4,
    due: true,
    text: 'A message takes effect in one turn of its recipient, however often it was sent or re-delivered.',
  },
  {
    id: 'inbox/busy-parent',
    part: 4,
    due: true,
    text: "A busy parent gets its children's completions at its next turn boundary, an idle one is woken.",
  },
  {
    id: 'schedule/every-firing-accounted',
    part: 6,
    due: true,
    text: 'Each due instant fires once or has a recorded reason why not; failures retry within a bound and end.',
  },
  {
    id: 'workspace/all-or-nothing',
    part: 8,
    due: true,
    text: 'Files change only if the run succeeded and its check passed; a crash leaves before or after, never between. Discarded work stays recoverable for a while.',
  },
  {
    id: 'control/stop-means-stopped',
    part: 1,
    due: true,
    text: 'Cancel or timeout ends every process the tool started, descendants included, and says so only when they are dead.',
  },
  {
    id: 'model/patient',
    part: 3,
    due: true,
    text: 'Rate limits are waited out as told by the provider, shared by everyone on the same quota, across restarts.',
  },
  {
    id: 'durable/acknowledged',
    part: 1,
    due: true,
    text: 'What was acknowledged survives kill -9 and power loss.',
  },
]
