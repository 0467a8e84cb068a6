import { signal } from '@preact/signals'

import { asProblem } from '../api/client.ts'

export interface Toast {
  readonly id: number
  readonly tone: 'good' | 'bad'
  readonly text: string
}

export const toasts = signal<readonly Toast[]>([])
let count = 0

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

/** Good news goes by itself; bad news stays until it was read, or newer ones need its place. */
export function say(text: string, tone: Toast['tone'] = 'good'): void {
  const id = (count += 1)
  toasts.value = [...toasts.value.slice(-2), { id, tone, text }]
  if (tone === 'good') setTimeout(() => dismiss(id), 4000)
}

export function sayProblem(what: string, error: unknown): void {
  const { message, remedy } = asProblem(error)
  say(`${what}: ${message}${remedy === undefined ? '' : `. To do: ${remedy}`}`, 'bad')
}

/** Does it, and says how it went. True when it went well. */
export async function attempt(what: string, act: () => Promise<unknown>, well?: string): Promise<boolean> {
  try {
    await act()
    if (well !== undefined) say(well)
    return true
  } catch (error) {
    sayProblem(what, error)
    return false
  }
}
