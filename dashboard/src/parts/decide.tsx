import { useState } from 'preact/hooks'

import type { Approval } from '../api/shapes.ts'
import { decide } from '../state/decide.ts'
import type { Decision } from '../state/decide.ts'
import { Key } from './small.tsx'

interface Props {
  readonly approval: Approval
  readonly keys?: boolean
  /** Not before it can have been read: the next one comes up under the pointer that decided the last. */
  readonly ready?: boolean
  readonly note?: string
  readonly onDecided?: () => void
}

const CHOICES: readonly (readonly [Decision, string, string, string])[] = [
  ['approve', 'Approve', 'a', 'button-main'],
  ['skip', 'Skip', 's', ''],
  ['deny', 'Deny', 'd', 'button-bad'],
]

/** Yes, not this one, no. */
export function Decide({ approval, keys = false, ready = true, note = '', onDecided }: Props) {
  const [busy, setBusy] = useState(false)
  const choose = async (decision: Decision) => {
    setBusy(true)
    const well = await decide(approval, decision, note)
    setBusy(false)
    if (well) onDecided?.()
  }
  return (
    <div class="flex flex-wrap items-center gap-2">
      {CHOICES.map(([decision, word, key, look]) => (
        <button
          key={decision}
          type="button"
          class={`button ${look}`}
          data-decision={decision}
          disabled={busy || !ready}
          onClick={() => void choose(decision)}
        >
          {word}
          {keys && <Key>{key}</Key>}
        </button>
      ))}
    </div>
  )
}
