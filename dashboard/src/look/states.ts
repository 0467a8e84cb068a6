/** How a state looks: a colour, a shape, and the word. The shape and the word say it to whoever sees no colours. */

export type Shape = 'dot' | 'ring' | 'check' | 'cross' | 'bar' | 'question' | 'hand' | 'clock' | 'dash' | 'repeat'

export interface Look {
  readonly word: string
  readonly colour: string
  readonly shape: Shape
  readonly alive?: true
}

const good = 'text-good'
const bad = 'text-bad'
const warn = 'text-warn'
const busy = 'text-busy'
const doubt = 'text-doubt'
const still = 'text-still'

const LOOKS: Readonly<Record<string, Look>> = {
  queued: { word: 'queued', colour: still, shape: 'ring' },
  running: { word: 'running', colour: busy, shape: 'dot', alive: true },
  parked: { word: 'waiting', colour: warn, shape: 'clock' },
  succeeded: { word: 'succeeded', colour: good, shape: 'check' },
  failed: { word: 'failed', colour: bad, shape: 'cross' },
  cancelled: { word: 'cancelled', colour: still, shape: 'bar' },
  cancelling: { word: 'cancelling', colour: warn, shape: 'bar', alive: true },

  proposed: { word: 'proposed', colour: still, shape: 'ring' },
  waiting: { word: 'needs a decision', colour: warn, shape: 'hand' },
  approved: { word: 'approved', colour: busy, shape: 'ring' },
  started: { word: 'at work', colour: busy, shape: 'dot', alive: true },
  done: { word: 'done', colour: good, shape: 'check' },
  in_doubt: { word: 'in doubt', colour: doubt, shape: 'question' },
  left_open: { word: 'left open', colour: still, shape: 'question' },
  skipped: { word: 'skipped', colour: still, shape: 'dash' },
  denied: { word: 'denied', colour: bad, shape: 'bar' },
  expired: { word: 'expired', colour: still, shape: 'clock' },
  withdrawn: { word: 'withdrawn', colour: still, shape: 'dash' },
  consumed: { word: 'used', colour: good, shape: 'check' },
  repeat: { word: 'same as before', colour: still, shape: 'repeat' },

  open: { word: 'open', colour: good, shape: 'ring' },
  idle: { word: 'idle', colour: still, shape: 'ring' },
  stopped: { word: 'stopped', colour: bad, shape: 'bar' },
  removed: { word: 'removed', colour: still, shape: 'dash' },

  pending: { word: 'pending', colour: warn, shape: 'clock' },
  leased: { word: 'being delivered', colour: busy, shape: 'dot' },
  replaced: { word: 'replaced', colour: still, shape: 'repeat' },
  dead: { word: 'not delivered', colour: bad, shape: 'cross' },

  active: { word: 'active', colour: good, shape: 'check' },
  paused: { word: 'paused', colour: warn, shape: 'bar' },
  ended: { word: 'ended', colour: still, shape: 'dash' },
  due: { word: 'due', colour: warn, shape: 'clock' },
  planned: { word: 'planned', colour: still, shape: 'ring' },
  dispatched: { word: 'dispatched', colour: busy, shape: 'dot' },
  dropped: { word: 'dropped', colour: bad, shape: 'dash' },
  quarantined: { word: 'quarantined', colour: bad, shape: 'hand' },
  ready: { word: 'ready to land', colour: warn, shape: 'hand' },
  opened: { word: 'opening', colour: busy, shape: 'ring' },
  prepared: { word: 'prepared', colour: busy, shape: 'dot' },
  checked: { word: 'checked', colour: busy, shape: 'dot' },
  decided: { word: 'landing', colour: busy, shape: 'dot', alive: true },
  landed: { word: 'landed', colour: good, shape: 'check' },
  discarding: { word: 'discarding', colour: still, shape: 'dash' },
  discarded: { word: 'discarded', colour: still, shape: 'dash' },
  kept: { word: 'kept', colour: good, shape: 'ring' },
  observing: { word: 'being looked at', colour: still, shape: 'ring' },
  would_land: { word: 'would land', colour: good, shape: 'ring' },
  would_discard: { word: 'would discard', colour: warn, shape: 'dash' },
  silent: { word: 'nobody hears of it', colour: bad, shape: 'question' },
}

export const lookOf = (state: string): Look => LOOKS[state] ?? { word: state, colour: still, shape: 'ring' }

const ENDED = new Set(['succeeded', 'failed', 'cancelled'])

export const isActive = (run: { readonly state: string } | undefined): boolean =>
  run !== undefined && !ENDED.has(run.state)

/** A run whose end has been asked for looks so from that instant. */
export const shownRun = (run: { readonly state: string; readonly cancelRequestedAt?: string | undefined }): string =>
  run.cancelRequestedAt !== undefined && isActive(run) ? 'cancelling' : run.state

/** One that is open looks as its last run. */
export const shownThread = ({
  state,
  run,
}: {
  readonly state: string
  readonly run?: { readonly state: string } | undefined
}) => (state === 'open' ? (run?.state ?? 'idle') : state)

/** What was answered from an earlier one was not done again. */
export const shownAction = ({ state, repeatOf }: { readonly state: string; readonly repeatOf?: string | undefined }) =>
  repeatOf === undefined ? state : 'repeat'

/** A schedule that is active is another thing. */
export const shownWorkspace = ({ state }: { readonly state: string }) => (state === 'active' ? 'started' : state)
