import { signal } from '@preact/signals'

import { asProblem, call, isSignedOut } from '../api/client.ts'
import type { Event, TextPart } from '../api/shapes.ts'
import { follow } from '../api/stream.ts'
import { signedOut } from './session.ts'

export type Connection = 'connecting' | 'live' | 'reconnecting'
export const connection = signal<Connection>('connecting')

/** The last event that was heard. */
let lastSeq = 0

type Listener = (event: Event) => void
const listeners = new Set<Listener>()

export function onEvent(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** What begins again with another database: everything that was read before is void. */
const voided = new Set<() => void>()
export function onVoid(listener: () => void): () => void {
  voided.add(listener)
  return () => voided.delete(listener)
}

/**
 * The stream is there. `anew`: it begins with what happens from now on, so what was read before that may miss something; otherwise
 * it goes on where it was.
 */
type Opened = (anew: boolean) => void
const opened = new Set<Opened>()
export function onOpen(listener: Opened): () => void {
  opened.add(listener)
  return () => opened.delete(listener)
}

/** What is being said and not recorded yet, by run. */
export interface Said {
  readonly reply: number
  readonly text: string
  readonly ended: boolean
  /** When it began, by this machine's clock. */
  readonly since: number
}
export const said = signal<ReadonlyMap<string, Said>>(new Map())

function hearText({ runId, reply, at, delta, ended }: TextPart): void {
  const known = said.value.get(runId)
  const next = new Map(said.value)
  if (ended === true) {
    if (known?.reply === reply) next.set(runId, { ...known, ended: true })
  } else if (known?.reply === reply && known.text.length === at) next.set(runId, { ...known, text: known.text + delta })
  else if (at === 0) next.set(runId, { reply, text: delta, ended: false, since: Date.now() })
  said.value = next
}

function hear(event: Event): void {
  lastSeq = event.seq
  for (const listener of listeners) listener(event)
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function beginning(): Promise<void> {
  lastSeq = (await call('threads.list', { limit: 1 })).seq
}

let stop: AbortController | undefined

/** For as long as one is signed in: reads the stream, and when it breaks goes on after the last event that was read. */
export async function stayConnected(): Promise<void> {
  stop?.abort()
  const mine = new AbortController()
  stop = mine
  let begun = false
  let isVoid = false
  for (let failures = 0; !mine.signal.aborted; failures += 1) {
    try {
      let anew = !begun
      if (!begun) await beginning()
      begun = true
      // Behind the number: what is read from here on has everything up to it, and the stream brings the rest.
      if (isVoid) for (const listener of voided) listener()
      isVoid = false
      for await (const frame of follow(lastSeq, mine.signal)) {
        if (frame.kind === 'event') hear(frame.data)
        else if (frame.kind === 'text') hearText(frame.data)
        else {
          failures = 0
          said.value = new Map()
          connection.value = 'live'
          for (const listener of opened) listener(anew)
          anew = false
        }
      }
    } catch (error) {
      const problem = asProblem(error)
      if (mine.signal.aborted) return
      if (isSignedOut(problem)) return signedOut('You are signed out: the daemon does not know this session any more.')
      if (problem.code === 'events/ahead' || problem.code === 'events/compacted') {
        begun = false
        isVoid = true
      }
    }
    connection.value = 'reconnecting'
    await pause(Math.min(250 * 2 ** failures, 4000))
  }
}

export function disconnect(): void {
  stop?.abort()
  connection.value = 'connecting'
}
