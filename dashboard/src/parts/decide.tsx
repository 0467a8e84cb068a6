import { useRef, useState } from 'preact/hooks'

import type { Approval } from '../api/shapes.ts'
import { decide } from '../state/decide.ts'
import type { Decision } from '../state/decide.ts'
import { Key } from './small.tsx'

export interface Choosing {
  readonly busy: boolean
  readonly choose: (decision: Decision) => void
}

interface Options {
  readonly note?: string
  /** Not before it can have been read: the next one comes up under the pointer that decided the last. */
  readonly ready?: boolean
  readonly onDecided?: () => void
}

/** One decision at a time, by a key or a button. */
export function useChoosing(approval: Approval, { note = '', ready = true, onDecided }: Options = {}): Choosing {
  const [busy, setBusy] = useState(false)
  // Two keys may come before the page is drawn anew.
  const isBusy = useRef(false)
  const choose = async (decision: Decision) => {
    if (!ready || isBusy.current) return
    isBusy.current = true
    setBusy(true)
    const well = await decide(approval, decision, note)
    isBusy.current = false
    setBusy(false)
    if (well) onDecided?.()
  }
  return { busy: busy || !ready, choose: (decision) => void choose(decision) }
}

const CHOICES: readonly (readonly [Decision, string, string, string])[] = [
  ['approve', 'Approve', 'a', 'button-main'],
  ['skip', 'Skip', 's', ''],
  ['deny', 'Deny', 'd', 'button-bad'],
]

/** Yes, not this one, no. */
export const Decide = ({ choosing: { busy, choose }, keys = false }: { choosing: Choosing; keys?: boolean }) => (
  <div class="flex flex-wrap items-center gap-2">
    {CHOICES.map(([decision, word, key, look]) => (
      <button
        key={decision}
        type="button"
        class={`button ${look}`}
        data-decision={decision}
        disabled={busy}
        onClick={() => choose(decision)}
      >
        {word}
        {keys && <Key>{key}</Key>}
      </button>
    ))}
  </div>
)
