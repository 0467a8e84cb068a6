import { useState } from 'preact/hooks'

import { asText, many, pieces } from '../look/words.ts'
import { attempt } from '../state/toast.ts'
import { Seen } from './small.tsx'

/** More than this is shown when asked for: a page of a million characters would hang. */
const SHOWN = 20_000

/** Exact bytes, with everything in them to be seen. */
export function Bytes({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = asText(value)
  const [whole, setWhole] = useState(false)
  const shown = whole ? text : text.slice(0, SHOWN)
  const hidden = pieces(shown).filter(({ unseen }) => unseen).length
  return (
    <figure class="border-line bg-sunken overflow-hidden rounded-md border">
      <figcaption class="border-line text-quiet flex items-center gap-2 border-b px-3 py-1 text-xs">
        <span class="font-medium">{label}</span>
        {hidden > 0 && <span class="text-bad font-medium">{many(hidden, 'character')} that one does not see</span>}
        <span class="ml-auto max-md:hidden">{many(text.length, 'character')}</span>
        <Copy text={text} />
      </figcaption>
      <pre class="bytes max-h-96 overflow-auto px-3 py-2" tabIndex={0} aria-label={label}>
        <Seen text={shown} />
      </pre>
      {shown.length < text.length && (
        <button type="button" class="button button-plain w-full" onClick={() => setWhole(true)}>
          Show the other {many(text.length - shown.length, 'character')}
        </button>
      )}
    </figure>
  )
}

function Copy({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    // A browser has no clipboard for a page that came over plain HTTP from another machine.
    if (!(await attempt('It was not copied', () => navigator.clipboard.writeText(text)))) return
    setCopied(true)
    setTimeout(() => setCopied(false), 1200)
  }
  return (
    <button type="button" class="hover:text-ink w-12 shrink-0 text-right max-md:ml-auto" onClick={() => void copy()}>
      {copied ? 'Copied' : 'Copy'}
    </button>
  )
}
