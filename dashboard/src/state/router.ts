import { computed, signal } from '@preact/signals'

const here = () => location.pathname + location.search

export const address = signal(here())
const path = computed(() => address.value.split('?')[0] ?? '/')
export const search = computed(() => new URLSearchParams(address.value.split('?')[1] ?? ''))

/** The parts of the path: `/runs/run_1` is `['runs', 'run_1']`. */
export const parts = computed(() => path.value.split('/').filter(Boolean).map(decoded))

/** An address that somebody typed may have a sign in it that means nothing: then it is what it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export function go(to: string, { replace = false } = {}): void {
  if (to === address.value) return
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  address.value = here()
  if (!replace) document.getElementById('main')?.scrollTo(0, 0)
}

/** Sets or clears one field of the query, without a step in the history. */
export function setQuery(name: string, value: string | undefined): void {
  const next = new URLSearchParams(search.value)
  if (value === undefined || value === '') next.delete(name)
  else next.set(name, value)
  const text = next.toString()
  go(path.value + (text === '' ? '' : `?${text}`), { replace: true })
}

function followLink(event: MouseEvent): void {
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
  const link = (event.target as Element | null)?.closest('a')
  if (!plain || event.defaultPrevented || !link?.href || link.target !== '' || link.origin !== location.origin) return
  event.preventDefault()
  go(link.pathname + link.search)
}

export function startRouter(): void {
  addEventListener('popstate', () => {
    address.value = here()
  })
  document.addEventListener('click', followLink)
}
