import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { useKeys } from '../state/keys.ts'
import { connection } from '../state/live.ts'
import { useResource } from '../state/resource.ts'
import { go, parts } from '../state/router.ts'
import { setTheme, theme } from '../state/theme.ts'
import type { Theme } from '../state/theme.ts'
import { dismiss, toasts } from '../state/toast.ts'
import { Help, toggleHelp } from './help.tsx'
import { Icon } from './icon.tsx'
import { Seen } from './small.tsx'
import type { IconName } from './icon.tsx'

interface Place {
  readonly to: string
  readonly name: string
  readonly key: string
  readonly icon: IconName
}

const PLACES: readonly Place[] = [
  { to: '/', name: 'Home', key: 'h', icon: 'home' },
  { to: '/approvals', name: 'Approvals', key: 'a', icon: 'hand' },
  { to: '/doubts', name: 'Doubts', key: 'd', icon: 'question' },
  { to: '/threads', name: 'Threads', key: 't', icon: 'thread' },
  { to: '/runs', name: 'Runs', key: 'r', icon: 'run' },
  { to: '/workspaces', name: 'Workspaces', key: 'w', icon: 'branch' },
  { to: '/inbox', name: 'Inbox', key: 'i', icon: 'inbox' },
  { to: '/schedules', name: 'Schedules', key: 's', icon: 'calendar' },
  { to: '/quotas', name: 'Quotas', key: 'q', icon: 'gauge' },
  { to: '/events', name: 'Events', key: 'e', icon: 'list' },
  { to: '/settings', name: 'Settings', key: ',', icon: 'gear' },
]

/** On a phone these have a place of their own at the bottom; the others are one tap further. */
const AT_HAND = ['/', '/approvals', '/threads', '/runs']

const isHere = (to: string) => (parts.value[0] ?? '') === to.slice(1)

function useCounts(): ReadonlyMap<string, number> {
  const approvals = useResource('approvals.list', {}, ['approval.', 'action.', 'run.finished'])
  const doubts = useResource('doubts.list', {}, ['action.settled', 'doubt.', 'run.finished'])
  const workspaces = useResource('workspaces.list', { state: ['ready', 'quarantined'] }, ['workspace.'])
  return new Map([
    ['/workspaces', workspaces.data.value?.items.length ?? 0],
    ['/approvals', approvals.data.value?.items.length ?? 0],
    ['/doubts', doubts.data.value?.items.length ?? 0],
  ])
}

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const counts = useCounts()
  useKeys('Go to', {
    ...Object.fromEntries(PLACES.map(({ to, name, key }) => [`g ${key}`, [name, () => go(to)] as const])),
    '?': ['these keys', toggleHelp],
  })
  const total = [...counts.values()].reduce((sum, each) => sum + each, 0)
  useEffect(() => {
    document.title = total === 0 ? 'Holdfast' : `(${total}) Holdfast`
  }, [total])
  return (
    <div class="flex h-full flex-col md:flex-row">
      <a href="#main" class="button absolute top-2 left-2 z-50 -translate-y-20 focus:translate-y-0" onClick={skip}>
        Skip to the content
      </a>
      <Side counts={counts} />
      <main id="main" class="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto" tabIndex={-1}>
        {children}
      </main>
      <Bar counts={counts} />
      <Toasts />
      <Help />
    </div>
  )
}

function skip(event: MouseEvent): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

function Side({ counts }: { readonly counts: ReadonlyMap<string, number> }) {
  return (
    <nav aria-label="Main" class="border-line bg-side flex w-52 shrink-0 flex-col border-r p-2 max-md:hidden">
      <a href="/" class="mb-2 flex h-10 items-center gap-2.5 px-2 text-base font-semibold tracking-tight">
        <img src="/icon.svg" alt="" class="size-6" />
        Holdfast
      </a>
      <ul class="grid gap-px">
        {PLACES.map((place) => (
          <li key={place.to}>
            <NavLink place={place} count={counts.get(place.to) ?? 0} />
          </li>
        ))}
      </ul>
      <div class="mt-auto grid gap-2 px-2 pt-2">
        <ThemeSwitch />
        <div class="flex items-center justify-between">
          <Connection />
          <button type="button" class="text-quiet hover:text-ink text-sm" onClick={toggleHelp}>
            Keys <kbd class="key">?</kbd>
          </button>
        </div>
      </div>
    </nav>
  )
}

function NavLink({ place: { to, name, icon, key }, count }: { readonly place: Place; readonly count: number }) {
  const here = isHere(to)
  return (
    <a
      href={to}
      title={`g ${key}`}
      aria-current={here ? 'page' : undefined}
      class={`flex h-8 items-center gap-2.5 rounded-md px-2 font-medium ${here ? 'bg-accent-soft text-accent' : 'text-quiet hover:bg-hover hover:text-ink'}`}
    >
      <Icon name={icon} />
      {name}
      {count > 0 && <Count value={count} />}
    </a>
  )
}

const Count = ({ value }: { readonly value: number }) => (
  <span class="bg-warn-soft text-warn ml-auto min-w-5 rounded-full px-1.5 text-center text-xs leading-5 font-semibold">
    {value > 99 ? '99+' : value}
  </span>
)

/** The places on a phone. */
function Bar({ counts }: { readonly counts: ReadonlyMap<string, number> }) {
  const more = useRef<HTMLDialogElement>(null)
  const rest = PLACES.filter(({ to }) => !AT_HAND.includes(to))
  const waiting = rest.reduce((sum, { to }) => sum + (counts.get(to) ?? 0), 0)
  const close = () => more.current?.close()
  return (
    <nav aria-label="Main" class="border-line bg-side grid shrink-0 grid-cols-5 border-t md:hidden">
      {PLACES.filter(({ to }) => AT_HAND.includes(to)).map((place) => (
        <BarLink key={place.to} place={place} count={counts.get(place.to) ?? 0} />
      ))}
      <button
        type="button"
        class="text-quiet relative grid h-14 place-content-center justify-items-center text-xs"
        onClick={() => more.current?.showModal()}
      >
        <Icon name="more" />
        More
        <Dot count={waiting} />
      </button>
      <dialog
        ref={more}
        aria-label="More places"
        class="bg-raised text-ink mx-auto mt-auto mb-0 w-full max-w-none rounded-t-xl p-4"
        onClick={close}
      >
        <ul class="grid grid-cols-2 gap-1">
          {rest.map((place) => (
            <li key={place.to}>
              <NavLink place={place} count={counts.get(place.to) ?? 0} />
            </li>
          ))}
        </ul>
        <div class="mt-4 flex items-center justify-between px-2">
          <Connection />
          <ThemeSwitch />
        </div>
      </dialog>
    </nav>
  )
}

function BarLink({ place: { to, name, icon }, count }: { readonly place: Place; readonly count: number }) {
  const here = isHere(to)
  return (
    <a
      href={to}
      aria-current={here ? 'page' : undefined}
      class={`relative grid h-14 place-content-center justify-items-center text-xs ${here ? 'text-accent font-medium' : 'text-quiet'}`}
    >
      <Icon name={icon} />
      {name}
      <Dot count={count} />
    </a>
  )
}

const Dot = ({ count }: { readonly count: number }) =>
  count === 0 ? null : (
    <span class="bg-warn absolute top-2 left-1/2 ml-2 size-2 rounded-full" title={`${count} wait`}>
      <span class="sr-only">{count} wait</span>
    </span>
  )

const WORDS = { live: 'Live', connecting: 'Connecting', reconnecting: 'Reconnecting' } as const

function Connection() {
  const state = connection.value
  return (
    <span id="connection" data-state={state} role="status" class="text-quiet flex items-center gap-1.5 text-sm">
      <span class={`size-2 rounded-full ${state === 'live' ? 'bg-good' : 'bg-warn breathe'}`} />
      {WORDS[state]}
    </span>
  )
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ['light', 'Light'],
  ['dark', 'Dark'],
  ['system', 'Auto'],
]

const ThemeSwitch = () => (
  <div
    role="radiogroup"
    aria-label="Theme"
    class="border-line bg-sunken grid grid-cols-3 rounded-md border p-0.5 text-xs"
  >
    {THEMES.map(([value, name]) => (
      <button
        key={value}
        type="button"
        role="radio"
        aria-checked={theme.value === value}
        class={`rounded px-2 py-0.5 ${theme.value === value ? 'bg-raised text-ink font-medium shadow-sm' : 'text-quiet hover:text-ink'}`}
        onClick={(event) => {
          event.stopPropagation()
          setTheme(value)
        }}
      >
        {name}
      </button>
    ))}
  </div>
)

const Toasts = () => (
  <div
    class="pointer-events-none fixed right-4 bottom-4 z-40 grid w-[min(26rem,calc(100vw-2rem))] gap-2 max-md:bottom-16"
    role="log"
    aria-label="Messages"
  >
    {toasts.value.map(({ id, tone, text }) => (
      <div
        key={id}
        data-toast={tone}
        class={`panel pointer-events-auto flex items-start gap-3 px-3 py-2 shadow-lg ${tone === 'bad' ? 'border-bad' : ''}`}
      >
        <p class="min-w-0 flex-1 wrap-anywhere">
          {tone === 'bad' && <strong class="text-bad">Not done. </strong>}
          <Seen text={text} />
        </p>
        <button type="button" class="text-quiet hover:text-ink" aria-label="Dismiss" onClick={() => dismiss(id)}>
          ✕
        </button>
      </div>
    ))}
  </div>
)
