import { batch, signal } from '@preact/signals'
import type { Signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'

import { call } from '../api/client.ts'
import type { Answer, Ask, EndpointName, Problem } from '../api/client.ts'
import type { Event } from '../api/shapes.ts'
import { onEvent, onOpen, onVoid } from './live.ts'
import { readProblem } from './session.ts'

type Listed<N extends EndpointName> = Answer<N> extends { items: readonly (infer T)[] } ? T : never

interface Options<T> {
  readonly id: (item: T) => string
  /** Beginnings of the events after which the newest page is read again. */
  readonly wakes: readonly string[]
  /** What an event says about one that is listed already, wherever it stands. */
  readonly patch?: (item: T, event: Event) => T
}

/** A list in pages, the newest first, that keeps its order while somebody looks at it. */
export interface Paged<T> {
  readonly items: Signal<readonly T[]>
  readonly problem: Signal<Problem | undefined>
  readonly loaded: Signal<boolean>
  /** There are older ones. */
  readonly hasMore: Signal<boolean>
  /** New ones that wait until nobody points at the list. */
  readonly fresh: Signal<number>
  readonly more: () => void
  hold(held: boolean): void
  release(): void
}

/** Enough for a screen and what comes after it; whoever scrolls on wants more at a time. */
const SIZE = 200
const NEXT_SIZE = 500
const PAUSE_MS = 250
const LOOKS = 20

class Pages<T> implements Paged<T> {
  readonly items = signal<readonly T[]>([])
  readonly problem = signal<Problem | undefined>(undefined)
  readonly loaded = signal(false)
  readonly hasMore = signal(false)
  readonly fresh = signal(0)
  readonly #read: (ask: object) => Promise<{ readonly items: readonly T[]; readonly next?: unknown }>
  readonly #options: Options<T>
  #next: unknown
  #loading = false
  #held = false
  /** What is to be listed once nobody points, and how many were listed when that was known: what is behind them came later. */
  #waiting: { readonly items: readonly T[]; readonly listed: number } | undefined
  #timer = 0
  /** Reads may overlap: how many were begun, and the last whose answer is shown. One that comes after a later one tells of the past. */
  #asked = 0
  #answered = 0
  /** Counts the databases: what was asked of an earlier one is not listed. */
  #age = 0

  constructor(name: EndpointName, ask: object, options: Options<T>, cursor: string) {
    this.#options = options
    this.#read = (more) =>
      call(name, { limit: SIZE, ...ask, ...more } as never) as Promise<{ items: readonly T[]; next?: unknown }>
    this.more = () => void this.#more(cursor)
  }

  readonly more: () => void

  start(): () => void {
    void this.#newest()
    const stops = [
      onEvent((event) => this.#hear(event)),
      onOpen((anew) => (anew || this.problem.value !== undefined) && void this.#newest()),
      onVoid(() => this.#startOver()),
    ]
    return () => {
      for (const stop of stops) stop()
      clearTimeout(this.#timer)
      this.#timer = 0
      this.hold(false)
    }
  }

  /** Of another database: nothing of what is listed is there. */
  #startOver(): void {
    this.#answered = this.#asked
    this.#age += 1
    this.#next = undefined
    this.#waiting = undefined
    this.loaded.value = false
    this.items.value = []
    void this.#newest()
  }

  #hear(event: Event): void {
    const { wakes, patch } = this.#options
    if (!wakes.some((wake) => event.type.startsWith(wake))) return
    if (patch !== undefined) this.#patch((item) => patch(item, event))
    if (this.#timer !== 0) return
    this.#timer = window.setTimeout(() => {
      this.#timer = 0
      void this.#newest()
    }, PAUSE_MS)
  }

  #patch(change: (item: T) => T): void {
    let changed = false
    const next = this.items.peek().map((item) => {
      const patched = change(item)
      changed ||= patched !== item
      return patched
    })
    if (changed) this.items.value = next
  }

  async #newest(): Promise<void> {
    const asked = (this.#asked += 1)
    try {
      const { items, next } = await this.#read({})
      if (asked <= this.#answered) return
      this.#answered = asked
      batch(() => {
        this.problem.value = undefined
        if (!this.loaded.peek()) {
          this.#next = next
          this.hasMore.value = next !== undefined
          this.items.value = items
          this.loaded.value = true
          if (items.length < SIZE / 4) this.more()
        } else this.#merge(items, next === undefined)
      })
    } catch (error) {
      if (asked <= this.#answered) return
      this.problem.value = readProblem(error)
      this.loaded.value = true
    }
  }

  /** What is known is renewed where it stands; what is new or gone changes the order, and waits while somebody points at it. */
  #merge(newest: readonly T[], isAll: boolean): void {
    const { id } = this.#options
    const byId = new Map(newest.map((item) => [id(item), item]))
    const known = this.items.peek()
    const oldest = newest.at(-1)
    const last = isAll || oldest === undefined ? known.length : known.findIndex((item) => id(item) === id(oldest)) + 1
    const rest = known.slice(last).filter((item) => !byId.has(id(item)))
    const merged = [...newest, ...rest]
    const knownIds = new Set(known.map(id))
    const added = newest.filter((item) => !knownIds.has(id(item))).length
    if (!this.#held) {
      this.items.value = merged
      this.fresh.value = 0
      return
    }
    this.#waiting = { items: merged, listed: known.length }
    this.fresh.value = added
    this.items.value = known.map((item) => byId.get(id(item)) ?? item)
  }

  hold(held: boolean): void {
    this.#held = held
    if (!held) this.release()
  }

  release(): void {
    if (this.#waiting === undefined) return
    const { id } = this.#options
    const { items, listed } = this.#waiting
    const known = new Set(items.map(id))
    const older = this.items.peek().slice(listed)
    batch(() => {
      this.items.value = [...items, ...older.filter((item) => !known.has(id(item)))]
      this.fresh.value = 0
    })
    this.#waiting = undefined
  }

  /** A page of what is rare may be empty although there is more behind it. */
  async #pageAfter(cursor: string): Promise<{ readonly items: readonly T[]; readonly next?: unknown }> {
    let page = await this.#read({ [cursor]: this.#next, limit: NEXT_SIZE })
    for (let looks = 1; page.items.length === 0 && page.next !== undefined && looks < LOOKS; looks += 1) {
      page = await this.#read({ [cursor]: page.next, limit: NEXT_SIZE })
    }
    return page
  }

  async #more(cursor: string): Promise<void> {
    if (this.#loading || this.#next === undefined) return
    this.#loading = true
    const age = this.#age
    try {
      const { items, next } = await this.#pageAfter(cursor)
      if (age !== this.#age) return
      const known = new Set(this.items.peek().map(this.#options.id))
      this.#next = next
      batch(() => {
        this.hasMore.value = next !== undefined
        this.items.value = [...this.items.peek(), ...items.filter((item) => !known.has(this.#options.id(item)))]
      })
    } catch (error) {
      this.problem.value = readProblem(error)
    } finally {
      this.#loading = false
    }
  }
}

/** Lists that one may come back to, as they were when one left. */
const KEPT = 8
const kept = new Map<string, Pages<unknown>>()
onVoid(() => kept.clear())

function keptPages<T>(key: string, make: () => Pages<T>): Pages<T> {
  const pages = (kept.get(key) as Pages<T> | undefined) ?? make()
  kept.delete(key)
  kept.set(key, pages as unknown as Pages<unknown>)
  const [oldest] = kept.keys()
  if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest)
  return pages
}

export function usePaged<N extends EndpointName>(
  name: N,
  ask: Ask<N>,
  options: Options<Listed<N>>,
  cursor = 'after',
): Paged<Listed<N>> {
  const key = `${name} ${JSON.stringify(ask)}`
  const pages = useMemo(() => keptPages(key, () => new Pages<Listed<N>>(name, ask, options, cursor)), [key, cursor])
  useEffect(() => pages.start(), [pages])
  return pages
}
