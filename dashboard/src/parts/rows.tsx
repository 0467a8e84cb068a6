import { useSignal } from '@preact/signals'
import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

import { useKeys } from '../state/keys.ts'
import { address, go } from '../state/router.ts'
import { narrow } from '../state/theme.ts'

interface Props<T> {
  readonly items: readonly T[]
  readonly id: (item: T) => string
  readonly href: (item: T) => string
  readonly row: (item: T) => ComponentChildren
  /** What the list is, for whoever hears it. */
  readonly label: string
  /** In pixels, wide and on a phone: every row has the same, so that nothing jumps. */
  readonly heights?: readonly [wide: number, narrow: number]
  /** Near the end: there may be more. */
  readonly onEnd?: () => void
  readonly onHover?: (hovers: boolean) => void
  readonly empty?: ComponentChildren
}

/** Rows above and below the window that are there already when one scrolls. */
const SPARE = 12

/** Where one was in each list, for when one comes back. */
const left = new Map<string, { readonly top: number; readonly chosen: string | undefined }>()

/** A list of any length: only what can be seen is in the page. j and k move, Enter opens. */
export function Rows<T>(props: Props<T>) {
  const { items, id, href, row, label, heights = [41, 61], onEnd, onHover, empty } = props
  const box = useRef<HTMLDivElement>(null)
  const height = heights[narrow.value ? 1 : 0]
  const shown = useSignal<readonly [number, number]>([0, 40])
  const place = address.value
  const chosen = useSignal<string | undefined>(left.get(place)?.chosen)
  const look = () => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    const from = Math.max(0, Math.floor(scrollTop / height) - SPARE)
    const to = Math.ceil((scrollTop + clientHeight) / height) + SPARE
    // In steps, so that most scrolling draws nothing.
    if (Math.abs(from - shown.peek()[0]) >= SPARE / 2 || to > shown.peek()[1]) shown.value = [from, to + SPARE / 2]
    else if (from < shown.peek()[0]) shown.value = [from, to + SPARE / 2]
    if (to >= items.length - 4 * SPARE) onEnd?.()
    left.set(place, { top: scrollTop, chosen: chosen.peek() })
  }
  useLayoutEffect(() => {
    if (box.current !== null) box.current.scrollTop = left.get(place)?.top ?? 0
  }, [place])
  useLayoutEffect(look, [items.length, height])
  useLayoutEffect(() => {
    addEventListener('resize', look)
    return () => removeEventListener('resize', look)
  })
  useMoving({ items, id, href, chosen, box, height, place })
  if (items.length === 0 && empty !== undefined) return <>{empty}</>
  const [from, to] = shown.value
  return (
    <div
      ref={box}
      class="relative min-h-0 flex-1 overflow-y-auto overscroll-contain [contain:strict]"
      onScroll={look}
      onPointerEnter={() => onHover?.(true)}
      onPointerLeave={() => onHover?.(false)}
      data-rows={items.length}
    >
      <ul aria-label={label} class="relative" style={{ height: `${items.length * height}px` }}>
        {items.slice(from, to).map((item, offset) => (
          <li
            key={id(item)}
            class="absolute inset-x-0"
            style={{ height: `${height}px`, transform: `translateY(${(from + offset) * height}px)` }}
            aria-setsize={items.length}
            aria-posinset={from + offset + 1}
          >
            <a
              class="row-link row-line block h-full"
              href={href(item)}
              aria-current={chosen.value === id(item) ? 'true' : undefined}
            >
              {row(item)}
            </a>
          </li>
        ))}
      </ul>
    </div>
  )
}

function reveal(box: HTMLElement | null, index: number, height: number): void {
  if (box === null) return
  const top = index * height
  if (top < box.scrollTop) box.scrollTop = top
  else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight
}

interface Moving<T> extends Pick<Props<T>, 'items' | 'id' | 'href'> {
  readonly chosen: Signal<string | undefined>
  readonly box: { readonly current: HTMLElement | null }
  readonly height: number
  readonly place: string
}

/** The keyboard's side of a list. */
function useMoving<T>({ items, id, href, chosen, box, height, place }: Moving<T>): void {
  const move = (by: number) => {
    const at = items.findIndex((item) => id(item) === chosen.peek())
    const to = at === -1 ? (by > 0 ? Math.round((box.current?.scrollTop ?? 0) / height) : -1) : at + by
    const item = items[Math.max(0, Math.min(items.length - 1, to))]
    if (item === undefined) return
    chosen.value = id(item)
    left.set(place, { top: box.current?.scrollTop ?? 0, chosen: id(item) })
    reveal(box.current, items.indexOf(item), height)
  }
  const open = () => {
    const item = items.find((each) => id(each) === chosen.peek())
    if (item !== undefined) go(href(item))
  }
  useKeys('This list', { j: ['next', () => move(1)], k: ['previous', () => move(-1)], Enter: ['open', open] })
}
