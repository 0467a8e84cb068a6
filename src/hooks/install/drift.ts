import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'

import { eventOf, targetOf, wantedHandlers } from './entries.ts'
import type { Handler, Wanted } from './entries.ts'
import { isEverything } from './merge.ts'
import type { Found } from './merge.ts'

/** One way in which entries of ours are not as they should be. */
export interface Drift {
  readonly what:
    | 'missing'
    | 'asynchronous'
    | 'twice'
    | 'narrowed'
    | 'program-gone'
    | 'other-program'
    | 'other-place'
    | 'changed'
    | 'superfluous'
    | 'disabled'
    | 'also-for-user'
    | 'unreadable'
  readonly detail: string
  readonly events?: readonly string[]
}

/** Compares what was found with what an installation would write now. */
export function driftOf(ours: readonly Found[], wanted: Wanted): Drift[] {
  const handlers = wantedHandlers(wanted)
  return [
    missing(ours, handlers),
    about(
      ours,
      'asynchronous',
      'what it answers comes too late to be read',
      ({ slot, handler }) => isAsynchronous(handler) && !isAsynchronous(handlers.get(slot) ?? {}),
    ),
    about(ours, 'twice', 'each event would be handled more than once', (found) => isSecond(ours, found)),
    about(ours, 'narrowed', 'a matcher keeps some of the events away', ({ matcher }) => !isEverything(matcher)),
    about(ours, 'superfluous', 'this Holdfast does not listen to it', ({ slot }) => !handlers.has(slot)),
    programs(ours, wanted),
    places(ours, wanted),
    about(ours, 'changed', 'the entry is not as it was written', (found) => isChanged(found, handlers.get(found.slot))),
  ].filter((drift) => drift !== undefined)
}

function missing(ours: readonly Found[], handlers: ReadonlyMap<string, Handler>): Drift | undefined {
  const slots = [...handlers.keys()].filter((slot) => !ours.some((found) => found.slot === slot))
  const events = [...new Set(slots.map(eventOf))]
  return events.length === 0 ? undefined : { what: 'missing', events, detail: `not listened to: ${events.join(', ')}` }
}

function about(
  ours: readonly Found[],
  what: Drift['what'],
  detail: string,
  applies: (found: Found) => boolean,
): Drift | undefined {
  const events = [...new Set(ours.filter(applies).map(({ event }) => event))]
  return events.length === 0 ? undefined : { what, events, detail: `${events.join(', ')}: ${detail}` }
}

const isAsynchronous = (handler: Handler) => handler['async'] === true || handler['asyncRewake'] === true

const isSecond = (ours: readonly Found[], found: Found) => ours.find(({ slot }) => slot === found.slot) !== found

const isCommand = ({ handler }: Found) => handler['type'] === 'command'

function programs(ours: readonly Found[], { node, script }: Wanted): Drift | undefined {
  const used = [...new Set(ours.filter(isCommand).flatMap(({ handler }) => programsOf(handler)))]
  const gone = used.filter((path) => !existsSync(path))
  if (gone.length > 0) return { what: 'program-gone', detail: `no longer there: ${gone.join(', ')}` }
  const other = used.filter((path) => path !== node && path !== script)
  if (other.length === 0) return undefined
  return {
    what: 'other-program',
    detail: `the entries start ${other.join(' and ')}, another Holdfast's or Node's than this`,
  }
}

const programsOf = (handler: Handler) => {
  const { node, script } = targetOf(handler)
  return [node, script].filter((path) => path !== undefined)
}

function places(ours: readonly Found[], wanted: Wanted): Drift | undefined {
  const other = ours.filter(isCommand).find(({ handler }) => {
    const { home, store } = targetOf(handler)
    return home !== wanted.home || store !== wanted.store
  })
  if (other === undefined) return undefined
  const { home = 'the default', store = 'the default' } = targetOf(other.handler)
  return { what: 'other-place', detail: `the entries write to another place: home ${home}, store ${store}` }
}

/** What the others have not said already: timeouts, added fields. */
function isChanged({ handler }: Found, wanted: Handler | undefined): boolean {
  if (wanted === undefined) return false
  // One that is to wait in the background would keep its client waiting.
  if (
    isAsynchronous(wanted) &&
    (handler['async'] !== wanted['async'] || handler['asyncRewake'] !== wanted['asyncRewake'])
  )
    return true
  const said = new Set(['command', 'args', 'async', 'asyncRewake'])
  const rest = (all: Handler) => Object.entries(all).filter(([key]) => !said.has(key))
  return !isDeepStrictEqual(new Map(rest(handler)), new Map(rest(wanted)))
}
