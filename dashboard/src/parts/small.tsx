import type { ComponentChildren } from 'preact'

import { ago, exact, pieces, shortId, span, threadPath, visible } from '../look/words.ts'
import { lookOf } from '../look/states.ts'
import type { Shape } from '../look/states.ts'
import { now } from '../state/clock.ts'

const PATHS: Readonly<Record<Shape, string>> = {
  dot: 'M8 4.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7z',
  ring: 'M8 4.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7z',
  check: 'M3.5 8.5l3 3 6-7',
  cross: 'M4.500 4.500l7 7m0-7l-7 7',
  bar: 'M5.500 4v8m5-8v8',
  question: 'M5.600 6a2.500 2.500 0 1 1 3.600 2.200c-.8.5-1.200.9-1.200 1.800m0 2.300v.2',
  hand: 'M8 3.500v5m0 3.700v.2',
  clock: 'M8 2.800a5.200 5.200 0 1 1 0 10.400 5.200 5.200 0 0 1 0-10.400zM8 5.200V8l2 1.500',
  dash: 'M4 8h8',
  repeat: 'M4 7a4 4 0 0 1 7-2l1 1m0-3v3H9M12 9a4 4 0 0 1-7 2l-1-1m0 3v-3h3',
}

export function Mark({ state }: { readonly state: string }) {
  const { colour, shape, alive } = lookOf(state)
  return (
    <svg
      class={`size-4 shrink-0 ${colour} ${alive === true ? 'breathe' : ''}`}
      viewBox="0 0 16 16"
      fill={shape === 'dot' ? 'currentColor' : 'none'}
      stroke="currentColor"
      stroke-width={shape === 'hand' ? 2.2 : 1.7}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[shape]} />
    </svg>
  )
}

/** A state with its mark and its word. */
export function State({ state, note }: { readonly state: string; readonly note?: string | undefined }) {
  const { word, colour } = lookOf(state)
  return (
    <span class="inline-flex min-w-0 items-center gap-1.5" data-state={state}>
      <Mark state={state} />
      <span class={`truncate text-sm font-medium ${colour}`}>
        {word}
        {note !== undefined && <span class="text-quiet font-normal"> · {visible(note)}</span>}
      </span>
    </span>
  )
}

/** How long ago; exactly when on hover. */
export function Ago({ at, class: more = '' }: { readonly at: string; readonly class?: string }) {
  return (
    <time class={`whitespace-nowrap ${more}`} dateTime={at} title={exact(at)}>
      {ago(at, now.value)}
    </time>
  )
}

/** How long it took, or has taken by now. */
export function Lasted({ from, to }: { readonly from: string | undefined; readonly to: string | undefined }) {
  if (from === undefined) return <span class="text-quiet">–</span>
  const ms = (to === undefined ? now.value : Date.parse(to)) - Date.parse(from)
  return (
    <span class="whitespace-nowrap" title={exact(from)}>
      {span(Math.max(0, ms))}
    </span>
  )
}

/** A text with nothing hidden in it. */
export const Seen = ({ text }: { readonly text: string }) => (
  <>
    {pieces(text).map((piece) =>
      piece.unseen ? (
        <span class="unseen" title="a character that one does not see">
          {piece.text}
        </span>
      ) : (
        piece.text
      ),
    )}
  </>
)

export const Key = ({ children }: { readonly children: string }) => (
  <kbd class="key max-md:hidden" aria-hidden="true">
    {children}
  </kbd>
)

/** A name and what is known under it. */
export const Fact = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div class="min-w-0">
    <dt class="text-quiet text-xs">{name}</dt>
    <dd class="min-w-0 truncate">{children}</dd>
  </div>
)

export const Id = ({ id }: { readonly id: string }) => <span class="font-mono text-xs">{id}</span>

/** A run, or a thread, by its name: where it is shown. */
export const RunLink = ({ id }: { readonly id: string }) => (
  <a class="link" href={`/runs/${id}`} title={id}>
    <Id id={shortId(id)} />
  </a>
)

export const ThreadLink = ({ id }: { readonly id: string }) => (
  <a class="link" href={threadPath(id)} title={visible(id)}>
    <Id id={visible(shortId(id))} />
  </a>
)

/** Nothing here: what would be, and what to do. */
export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="grid place-items-center px-6 py-14 text-center">
    <div class="max-w-md">
      <p class="font-medium">{title}</p>
      {children !== undefined && <div class="text-quiet mt-1">{children}</div>}
    </div>
  </div>
)
