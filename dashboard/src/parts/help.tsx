import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import { bindings } from '../state/keys.ts'
import type { Binding } from '../state/keys.ts'

const isOpen = signal(false)

export const toggleHelp = (): void => {
  isOpen.value = !isOpen.value
}

/** Every key that can be pressed on this page. */
export function Help() {
  const box = useRef<HTMLDialogElement>(null)
  const open = isOpen.value
  useEffect(() => {
    if (open) box.current?.showModal()
    else box.current?.close()
  }, [open])
  const groups = Map.groupBy(firstOfEach(bindings()), ({ group }) => group)
  return (
    <dialog
      ref={box}
      aria-label="Keys"
      class="panel text-ink m-auto w-[min(36rem,calc(100vw-2rem))] p-5"
      onClose={() => (isOpen.value = false)}
      onClick={(event) => event.target === box.current && box.current?.close()}
    >
      <div class="mb-3 flex items-center justify-between">
        <h1>Keys</h1>
        <form method="dialog">
          <button class="button">Close</button>
        </form>
      </div>
      <div class="grid gap-5 sm:grid-cols-2">
        {[...groups].map(([group, keys]) => (
          <section key={group}>
            <h2 class="text-quiet mb-1">{group}</h2>
            <ul class="grid gap-1">
              {keys.map(({ key, does }) => (
                <li key={key} class="flex items-center justify-between gap-4">
                  {does}
                  <kbd class="key">{key}</kbd>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </dialog>
  )
}

function firstOfEach(all: readonly Binding[]): Binding[] {
  const seen = new Set<string>()
  return all.filter(({ key }) => !seen.has(key) && seen.add(key) !== undefined)
}
