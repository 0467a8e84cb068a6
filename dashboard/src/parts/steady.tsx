import { useRef, useState } from 'preact/hooks'

interface Steady<T> {
  readonly shown: readonly T[]
  /** Those that are not there any more and keep their place while somebody points. */
  readonly gone: ReadonlySet<string>
  readonly hover: { readonly onPointerEnter: () => void; readonly onPointerLeave: () => void }
}

/** While somebody points at a list its lines stay where they are: what is new comes at the end, what is gone fades. */
export function useSteady<T>(items: readonly T[], id: (item: T) => string): Steady<T> {
  const [held, setHeld] = useState(false)
  const before = useRef<readonly T[]>([])
  const byId = new Map(items.map((item) => [id(item), item]))
  const kept = held ? before.current.map((item) => byId.get(id(item)) ?? item) : items
  const known = new Set(kept.map(id))
  const shown = held ? [...kept, ...items.filter((item) => !known.has(id(item)))] : items
  before.current = shown
  return {
    shown,
    gone: new Set(held ? shown.map(id).filter((each) => !byId.has(each)) : []),
    hover: { onPointerEnter: () => setHeld(true), onPointerLeave: () => setHeld(false) },
  }
}
