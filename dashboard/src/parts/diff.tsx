import { useMemo, useState } from 'preact/hooks'

import { filesOf } from '../look/diff.ts'
import type { DiffFile, LineKind } from '../look/diff.ts'
import { many, visible } from '../look/words.ts'
import { Seen } from './small.tsx'

/** More lines than this are shown when asked for, and more files than this are folded: a page of a million hangs. */
const SHOWN_LINES = 400
const OPEN_FILES = 12

const LOOKS: Readonly<Record<LineKind, string>> = {
  added: 'bg-good-soft',
  removed: 'bg-bad-soft',
  place: 'text-quiet bg-sunken',
  about: 'text-quiet italic',
  same: '',
}

/** What changed, file by file. The sign before a line says it too, to whoever sees no colours. */
export function Diff({ text, truncated }: { readonly text: string; readonly truncated: boolean }) {
  const files = useMemo(() => filesOf(text), [text])
  return (
    <div class="grid gap-2" data-diff={files.length}>
      {files.map((file, index) => (
        <OneFile key={`${index} ${file.path}`} file={file} open={index < OPEN_FILES} />
      ))}
      {truncated && (
        <p class="text-warn text-sm">That is the beginning. `git diff` in the repository shows all of it.</p>
      )}
    </div>
  )
}

function OneFile({ file, open }: { readonly file: DiffFile; readonly open: boolean }) {
  const [whole, setWhole] = useState(false)
  const { path, added, removed, lines } = file
  const shown = whole ? lines : lines.slice(0, SHOWN_LINES)
  return (
    <details class="border-line overflow-hidden rounded-md border" open={open}>
      <summary class="bg-sunken hover:bg-hover flex min-h-8 items-center gap-3 px-3 py-1">
        <span class="min-w-0 flex-1 truncate font-mono text-sm font-semibold" title={visible(path)}>
          {visible(path)}
        </span>
        <span class="text-good font-mono text-xs">+{added}</span>
        <span class="text-bad font-mono text-xs">−{removed}</span>
      </summary>
      <div
        class="bytes bg-raised border-line max-h-128 overflow-auto border-t py-1"
        tabIndex={0}
        role="region"
        aria-label={`Changes in ${visible(path)}`}
      >
        {shown.map((line, index) => (
          <div key={index} class={`min-h-5 px-3 ${LOOKS[line.kind]}`} data-line={line.kind}>
            <Seen text={line.text} />
          </div>
        ))}
        {shown.length < lines.length && (
          <button type="button" class="button button-plain w-full" onClick={() => setWhole(true)}>
            Show the other {many(lines.length - shown.length, 'line')}
          </button>
        )}
      </div>
    </details>
  )
}
