import type { ComponentChildren } from 'preact'

import { many } from '../look/words.ts'
import type { Paged } from '../state/paged.ts'
import { setQuery } from '../state/router.ts'
import { Trouble, Waiting } from './page.tsx'
import { Rows } from './rows.tsx'

interface Props<T> {
  readonly pages: Paged<T>
  readonly id: (item: T) => string
  readonly href: (item: T) => string
  readonly row: (item: T) => ComponentChildren
  readonly label: string
  readonly empty: ComponentChildren
  readonly head?: ComponentChildren
  readonly heights?: readonly [wide: number, narrow: number]
}

/** A whole page of rows, with a line above it that says how many there are and what came meanwhile. */
export function List<T>({ pages, head, ...rows }: Props<T>) {
  if (!pages.loaded.value)
    return (
      <div class="p-4">
        <Waiting rows={12} />
      </div>
    )
  const items = pages.items.value
  return (
    <>
      <Trouble problem={pages.problem.value} />
      <div class="row-line bg-sunken text-quiet relative h-8 shrink-0 text-xs">
        <div class="h-full max-md:hidden" aria-hidden="true">
          {head}
        </div>
        <span class="bg-sunken absolute inset-y-0 right-4 flex items-center gap-3 pl-3 md:right-6" role="status">
          {pages.fresh.value > 0 && (
            <button type="button" class="text-accent font-semibold" onClick={() => pages.release()}>
              {many(pages.fresh.value, 'new one')}: show
            </button>
          )}
          {pages.hasMore.value ? `${items.length} and more` : `${items.length} in all`}
        </span>
      </div>
      <Rows {...rows} items={items} onEnd={pages.more} onHover={(hovers) => pages.hold(hovers)} />
    </>
  )
}

/** One of a few, kept in the address. */
export function Choice({
  name,
  label,
  options,
  value,
}: {
  readonly name: string
  readonly label: string
  readonly options: readonly (readonly [value: string, word: string])[]
  readonly value: string
}) {
  return (
    <div role="group" aria-label={label} class="flex gap-1 overflow-x-auto">
      {options.map(([each, word]) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === value}
          class={`h-7 shrink-0 rounded-md px-2.5 text-sm ${each === value ? 'bg-accent-soft text-accent font-semibold' : 'text-quiet hover:bg-hover hover:text-ink'}`}
          onClick={() => setQuery(name, each)}
        >
          {word}
        </button>
      ))}
    </div>
  )
}
