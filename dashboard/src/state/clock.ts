import { signal } from '@preact/signals'

/** The time that is shown everywhere: it moves once a second, and not at all while nobody looks. */
export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, 1000)
  document.addEventListener('visibilitychange', () => {
    now.value = Date.now()
  })
}
