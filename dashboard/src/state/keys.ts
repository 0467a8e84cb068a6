import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

/** One key, or `g r` for two in a row. */
export interface Binding {
  readonly key: string
  readonly does: string
  readonly group: string
  readonly run: () => void
}

const layers = signal<readonly (readonly Binding[])[]>([])

/** What can be pressed now, for the help. The innermost layer comes first. */
export const bindings = () => layers.value.flat()

/** Keys as long as the component is there. What is added later wins. */
export function useKeys(group: string, keys: Readonly<Record<string, readonly [does: string, run: () => void]>>): void {
  const latest = useRef(keys)
  latest.current = keys
  const names = Object.keys(keys).join('\n')
  useEffect(() => {
    const layer = Object.entries(latest.current).map(([key, [does]]) => ({
      key,
      does,
      group,
      run: () => latest.current[key]?.[1](),
    }))
    layers.value = [layer, ...layers.peek()]
    return () => {
      layers.value = layers.peek().filter((each) => each !== layer)
    }
  }, [names, group])
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** `g`, then within this the second key. */
const SEQUENCE_MS = 1200
let first: { readonly key: string; readonly until: number } | undefined

function press(event: KeyboardEvent): void {
  // A key that is held down must not decide about what comes next.
  if (event.repeat && !/^(j|k|Arrow)/.test(event.key)) return
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return
  if (isTyping(event.target)) {
    if (event.key === 'Escape') (event.target as HTMLElement).blur()
    return
  }
  // A dialog has keys of its own; a button has its Enter and its space.
  if (document.querySelector('dialog[open]') !== null && event.key !== '?') return
  if ((event.key === 'Enter' || event.key === ' ') && (event.target as Element).closest('a, button, summary')) return
  const now = performance.now()
  const name = first !== undefined && first.until > now ? `${first.key} ${event.key}` : event.key
  const all = bindings()
  first = undefined
  const found = all.find(({ key }) => key === name)
  if (found !== undefined) {
    event.preventDefault()
    found.run()
  } else if (all.some(({ key }) => key.startsWith(`${event.key} `)))
    first = { key: event.key, until: now + SEQUENCE_MS }
}

export const startKeys = (): void => document.addEventListener('keydown', press)
