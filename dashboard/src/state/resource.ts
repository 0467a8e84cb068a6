import { batch, signal } from '@preact/signals'
import type { Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { call } from '../api/client.ts'
import type { Answer, Ask, EndpointName, Problem } from '../api/client.ts'
import { onEvent, onOpen, onVoid } from './live.ts'
import { readProblem } from './session.ts'

/** What is asked and what is decided, numbered in its order: an answer tells of nothing that came after it was asked for. */
let moments = 0
export const thisMoment = (): number => (moments += 1)

/** What was read from one endpoint, kept while pages come and go, and read again when an event says that it changed. */
export interface Resource<T> {
  readonly data: Signal<T | undefined>
  /** When that was asked for. */
  readonly asOf: Signal<number>
  readonly problem: Signal<Problem | undefined>
  readonly refresh: () => void
}

interface Kept extends Resource<unknown> {
  readonly name: string
  /** Who looks at it: what each of them wants it to be read again after. */
  readonly readers: Set<readonly string[]>
}

/** Pages that one may come back to; the one that was not looked at for longest goes. */
const KEPT = 60
/** At most so often, however much happens. */
const PAUSE_MS = 200

const kept = new Map<string, Kept>()

function open(name: EndpointName, ask: object): Kept {
  const key = `${name} ${JSON.stringify(ask)}`
  const known = kept.get(key)
  const found = known ?? make(name, ask)
  kept.delete(key)
  kept.set(key, found)
  for (const [old, { readers }] of kept) {
    if (kept.size <= KEPT) break
    if (readers.size === 0 && old !== key) kept.delete(old)
  }
  return found
}

function make(name: EndpointName, ask: object): Kept {
  const data = signal<unknown>(undefined)
  const asOf = signal(0)
  const problem = signal<Problem | undefined>(undefined)
  let busy = false
  let dirty = false
  const read = async () => {
    busy = true
    dirty = false
    const began = performance.now()
    const asked = thisMoment()
    try {
      const answer = await call(name, ask as Ask<typeof name>)
      batch(() => {
        data.value = answer
        asOf.value = asked
        problem.value = undefined
      })
    } catch (error) {
      problem.value = readProblem(error)
    }
    const again = () => {
      busy = false
      if (dirty) void read()
    }
    // A slow answer is asked for less often: three times as long as it took is left in between.
    setTimeout(again, Math.max(PAUSE_MS, 3 * (performance.now() - began)))
  }
  const refresh = () => {
    dirty = true
    if (!busy) void read()
  }
  return { name, data, asOf, problem, refresh, readers: new Set() }
}

onEvent(({ type, runId, threadId }) => {
  for (const { readers, refresh } of kept.values()) {
    const wakes = [...readers].flat()
    if (wakes.some((wake) => type.startsWith(wake) || wake === runId || wake === threadId)) refresh()
  }
})

// What could not be read while nobody answered is read now.
onOpen((anew) => {
  for (const { readers, problem, refresh } of kept.values())
    if (readers.size > 0 && (anew || problem.value !== undefined)) refresh()
})

onVoid(() => {
  for (const [key, { readers, refresh, data }] of kept) {
    if (readers.size === 0) kept.delete(key)
    else {
      data.value = undefined
      refresh()
    }
  }
})

/** `wakes` are the beginnings of event types (`approval.`), or ids of runs and threads. */
export function useResource<N extends EndpointName>(
  name: N,
  ask: Ask<N>,
  wakes: readonly string[] = [],
): Resource<Answer<N>> {
  const found = open(name, ask)
  const key = wakes.join(' ')
  useEffect(() => {
    const own = key === '' ? [] : key.split(' ')
    found.readers.add(own)
    found.refresh()
    return () => {
      found.readers.delete(own)
    }
  }, [found, key])
  return found as unknown as Resource<Answer<N>>
}

/** Reads again what is on the screen of these endpoints: for the one who just changed it. */
export function refreshNow(...names: readonly EndpointName[]): void {
  for (const { name, readers, refresh } of kept.values())
    if (readers.size > 0 && names.includes(name as EndpointName)) refresh()
}
