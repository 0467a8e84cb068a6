import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const stored = (): Theme => {
  const { theme } = document.documentElement.dataset
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export const theme = signal<Theme>(stored())
const system = matchMedia('(prefers-color-scheme: dark)')

/** Counts up when colours change, for what is painted and not styled. */
export const repaint = signal(0)
system.addEventListener('change', () => {
  repaint.value += 1
})

export function setTheme(next: Theme): void {
  theme.value = next
  if (next === 'system') {
    delete document.documentElement.dataset['theme']
    localStorage.removeItem('theme')
  } else {
    document.documentElement.dataset['theme'] = next
    localStorage.setItem('theme', next)
  }
  repaint.value += 1
}

/** Phones: one column, a bar of keys at the bottom. */
const wide = matchMedia('(min-width: 768px)')
export const narrow = signal(!wide.matches)
wide.addEventListener('change', () => {
  narrow.value = !wide.matches
})
