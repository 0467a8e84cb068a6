import { useEffect, useRef, useState } from 'preact/hooks'

import type { Approval } from '../api/shapes.ts'
import { editable, many, pieces, visible } from '../look/words.ts'
import { edit } from '../state/decide.ts'
import { go } from '../state/router.ts'
import { Key } from './small.tsx'

interface Props {
  readonly approval: Approval
  readonly note: string
  readonly onClose: () => void
}

type Read = { readonly input: unknown } | { readonly wrong: string }

function readInput(text: string): Read {
  try {
    return { input: JSON.parse(text) as unknown }
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : 'This is not JSON' }
  }
}

/** A person changes what a tool is called with. What it becomes asks for a yes of its own, so nothing is done by saving it. */
export function EditCall({ approval, note, onClose }: Props) {
  const box = useRef<HTMLDialogElement>(null)
  const before = editable(approval.input)
  const [text, setText] = useState(before)
  const [busy, setBusy] = useState(false)
  const read = readInput(text)
  const isSame = 'input' in read && JSON.stringify(read.input) === JSON.stringify(approval.input)
  useEffect(() => box.current?.showModal(), [])
  const save = async () => {
    if (busy || !('input' in read) || isSame) return
    setBusy(true)
    const edited = await edit(approval, read.input, note)
    setBusy(false)
    if (edited === undefined) return
    onClose()
    go(`/approvals/${edited}`, { replace: true })
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void save()
  }
  const hidden = pieces(text).filter(({ unseen }) => unseen).length
  const wrong = 'wrong' in read ? read.wrong : isSame ? 'Nothing is changed yet.' : ''
  return (
    <dialog
      ref={box}
      aria-label="Change the call"
      class="panel text-ink m-auto grid w-[min(44rem,calc(100vw-2rem))] gap-3 p-5"
      onClose={onClose}
    >
      <h1>
        Change the call of <span class="font-mono">{visible(approval.tool)}</span>
      </h1>
      <p class="text-quiet">The changed call asks for a yes of its own: saving it does nothing yet.</p>
      <textarea
        class="field bytes h-72"
        aria-label="Input, as JSON"
        aria-invalid={'wrong' in read}
        aria-describedby="edit-problem"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={press}
      />
      <p id="edit-problem" role="status" class={`min-h-5 text-sm ${'wrong' in read ? 'text-bad' : 'text-quiet'}`}>
        {visible(wrong)}
        {hidden > 0 && <strong class="text-bad"> {many(hidden, 'character')} in it that one does not see.</strong>}
      </p>
      <div class="flex flex-wrap gap-2">
        <button
          type="button"
          class="button button-main"
          data-edit="save"
          disabled={busy || isSame || 'wrong' in read}
          onClick={() => void save()}
        >
          Save, and ask again <Key>ctrl enter</Key>
        </button>
        <button type="button" class="button" onClick={() => setText(before)} disabled={text === before}>
          As it was
        </button>
        <button type="button" class="button ml-auto" onClick={() => box.current?.close()}>
          Close <Key>esc</Key>
        </button>
      </div>
    </dialog>
  )
}
