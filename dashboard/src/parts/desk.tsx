import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { useKeys } from '../state/keys.ts'
import { go } from '../state/router.ts'
import { narrow } from '../state/theme.ts'
import { PageFrame } from './page.tsx'

interface Props<T> {
  readonly title: string
  readonly place: string
  readonly items: readonly T[]
  readonly chosen: string | undefined
  readonly id: (item: T) => string
  readonly isOpen: (item: T) => boolean
  readonly row: (item: T) => ComponentChildren
  readonly empty: ComponentChildren
  readonly trouble: ComponentChildren
  readonly children: ComponentChildren
}

/** What waits on the left, the chosen one on the right with everything that is known about it. On a phone one after the other. */
export function Desk<T>(props: Props<T>) {
  const { title, place, items, chosen, id, row, empty, trouble, children } = props
  const move = (by: number) => {
    const at = items.findIndex((item) => id(item) === chosen)
    const item = items[Math.max(0, Math.min(items.length - 1, at + by))]
    if (item !== undefined) go(`${place}/${id(item)}`, { replace: true })
  }
  useKeys(title, { j: ['next', () => move(1)], k: ['previous', () => move(-1)] })
  const alone = narrow.value && chosen !== undefined
  return (
    <PageFrame title={title} filled {...(alone ? { up: [place, title] as const } : {})}>
      {trouble}
      {items.length === 0 && chosen === undefined ? (
        empty
      ) : (
        <div class="flex min-h-0 flex-1">
          {!alone && (
            <ul
              class="border-line w-80 shrink-0 overflow-y-auto border-r max-md:w-full max-md:border-0"
              aria-label={title}
            >
              {items.map((item) => (
                <li key={id(item)}>
                  <a
                    class={`row-link row-line block px-4 py-2 ${props.isOpen(item) ? '' : 'opacity-70'}`}
                    href={`${place}/${id(item)}`}
                    aria-current={id(item) === chosen ? 'true' : undefined}
                  >
                    {row(item)}
                  </a>
                </li>
              ))}
            </ul>
          )}
          {(!narrow.value || alone) && <Detail key={chosen}>{children}</Detail>}
        </div>
      )}
    </PageFrame>
  )
}

function Detail({ children }: { readonly children: ComponentChildren }) {
  return <div class="min-h-0 min-w-0 flex-1 overflow-y-auto px-4 pt-4 md:px-6 md:pt-6">{children}</div>
}

/** What was shown for a shorter time than this cannot have been read: a key pressed twice decides once. */
const READ_MS = 400

/** Whether this one has been on the screen long enough. */
export function useWasRead(id: string): boolean {
  const [read, setRead] = useState<string | undefined>(undefined)
  useEffect(() => {
    const timer = setTimeout(() => setRead(id), READ_MS)
    return () => clearTimeout(timer)
  }, [id])
  return read === id
}

/** The next one that is open, after the one that was just decided. */
export function nextOpen<T>(items: readonly T[], isOpen: (item: T) => boolean, at: number): T | undefined {
  return items.slice(at + 1).find(isOpen) ?? items.slice(0, Math.max(0, at)).find(isOpen)
}
