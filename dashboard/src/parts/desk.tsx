import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import type { Problem } from '../api/client.ts'
import { brief, visible } from '../look/words.ts'
import { decided, decidedSince } from '../state/decide.ts'
import { useKeys } from '../state/keys.ts'
import type { Resource } from '../state/resource.ts'
import { go } from '../state/router.ts'
import { narrow } from '../state/theme.ts'
import { PageFrame, Trouble, Waiting } from './page.tsx'
import { Ago, State } from './small.tsx'

/** Something that waits for a person. */
interface Matter {
  readonly id: string
  readonly agent: string
  readonly tool: string
  readonly input: unknown
}

interface Matters<T> {
  readonly items: readonly T[]
  readonly chosen: string | undefined
  readonly listed: T | undefined
  readonly isOpen: (item: T) => boolean
  /** To the next one that is open. */
  readonly advance: () => void
  readonly loaded: boolean
  readonly problem: Problem | undefined
}

/** Those that wait, and those that were decided here meanwhile, each where it stood. */
export function useMatters<T extends Matter>(
  place: string,
  { data, asOf, problem }: Resource<{ readonly items: readonly T[] }>,
  id: string | undefined,
): Matters<T> {
  const seen = useRef(new Map<string, T>())
  const waiting = data.value?.items
  for (const each of waiting ?? []) seen.current.set(each.id, each)
  const open = new Set(waiting?.map((each) => each.id))
  const items = [...seen.current.values()].filter((each) => open.has(each.id) || decided.value.has(each.id))
  const isOpen = (each: T) => open.has(each.id) && decidedSince(each.id, asOf.value) === undefined
  const chosen = id ?? (narrow.value ? undefined : (items.find(isOpen) ?? items[0])?.id)
  const at = items.findIndex((each) => each.id === chosen)
  const advance = () => {
    const next = items.slice(at + 1).find(isOpen) ?? items.slice(0, Math.max(0, at)).find(isOpen)
    if (next !== undefined) go(`${place}/${next.id}`, { replace: true })
    else if (narrow.value) go(place, { replace: true })
  }
  return { items, chosen, listed: items[at], isOpen, advance, loaded: waiting !== undefined, problem: problem.value }
}

interface Props<T> {
  readonly title: string
  readonly place: string
  readonly matters: Matters<T>
  /** How one looks that nobody has decided. */
  readonly state: string
  readonly since: (item: T) => string
  readonly empty: ComponentChildren
  readonly children: ComponentChildren
}

/** What waits on the left, the chosen one on the right with everything that is known about it. On a phone one after the other. */
export function Desk<T extends Matter>(props: Props<T>) {
  const { title, place, matters, empty, children } = props
  const { items, chosen, loaded, problem } = matters
  const move = (by: number) => {
    const at = items.findIndex((item) => item.id === chosen)
    const item = items[Math.max(0, Math.min(items.length - 1, at + by))]
    if (item !== undefined) go(`${place}/${item.id}`, { replace: true })
  }
  useKeys(title, { j: ['next', () => move(1)], k: ['previous', () => move(-1)] })
  const alone = narrow.value && chosen !== undefined
  return (
    <PageFrame title={title} filled {...(alone ? { up: [place, title] as const } : {})}>
      <Trouble problem={problem} />
      {!loaded && chosen === undefined ? (
        problem === undefined && <Loading />
      ) : items.length === 0 && chosen === undefined ? (
        empty
      ) : (
        <div class="flex min-h-0 flex-1">
          {!alone && <MatterList {...props} />}
          {(!narrow.value || alone) && <Detail key={chosen}>{children}</Detail>}
        </div>
      )}
    </PageFrame>
  )
}

const Loading = () => (
  <div class="p-4">
    <Waiting />
  </div>
)

const MatterList = <T extends Matter>({ title, place, matters, state, since }: Props<T>) => (
  <ul class="border-line w-80 shrink-0 overflow-y-auto border-r max-md:w-full max-md:border-0" aria-label={title}>
    {matters.items.map((item) => {
      const isOpen = matters.isOpen(item)
      return (
        <li key={item.id}>
          <a
            class={`row-link row-line block px-4 py-2 ${isOpen ? '' : 'opacity-70'}`}
            href={`${place}/${item.id}`}
            aria-current={item.id === matters.chosen ? 'true' : undefined}
          >
            <span class="flex items-center gap-2">
              <State state={isOpen ? state : (decided.value.get(item.id)?.state ?? state)} />
              <span class="text-quiet ml-auto text-xs">
                <Ago at={since(item)} />
              </span>
            </span>
            <span class="mt-0.5 block truncate font-mono text-sm font-semibold">{visible(item.tool)}</span>
            <span class="text-quiet block truncate text-xs">
              {[visible(item.agent), brief(item.input)].filter(Boolean).join(' · ')}
            </span>
          </a>
        </li>
      )
    })}
  </ul>
)

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
    return () => {
      clearTimeout(timer)
      // What comes back under the same words within that time was not read for that.
      setRead(undefined)
    }
  }, [id])
  return read === id
}
