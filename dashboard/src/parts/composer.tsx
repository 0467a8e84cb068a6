import { useEffect, useRef, useState } from 'preact/hooks'

import { asProblem, call } from '../api/client.ts'
import { threadPath } from '../look/words.ts'
import { useKeys } from '../state/keys.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { go } from '../state/router.ts'

type To = { readonly threadId: string } | { readonly agent: string }

/** What was typed and not sent, by thread: leaving the page does not lose it. */
const drafts = new Map<string, string>()

interface Props {
  readonly to: To | undefined
  readonly placeholder: string
  readonly onSent: (threadId: string) => void
  readonly disabled?: boolean
}

/** One key a message: when the answer to a sending is lost, sending it again does not make it two. */
export function Composer({ to, placeholder, onSent, disabled = false }: Props) {
  const place = to === undefined ? 'nobody' : 'threadId' in to ? to.threadId : 'new'
  const [text, setText] = useState(drafts.get(place) ?? '')
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const key = useRef({ text: '', value: '' })
  const box = useRef<HTMLTextAreaElement>(null)
  useKeys('Writing', { r: ['write a message', () => box.current?.focus()] })
  useEffect(() => void drafts.set(place, text), [place, text])
  const send = async () => {
    const said = text.trim()
    if (said === '' || busy || to === undefined) return
    if (key.current.text !== said) key.current = { text: said, value: crypto.randomUUID() }
    setBusy(true)
    try {
      const { threadId } = await call('messages.send', { ...to, text: said, key: key.current.value })
      key.current = { text: '', value: '' }
      // What was typed meanwhile is the beginning of the next one.
      setText((typed) => (typed.startsWith(text) ? typed.slice(text.length) : typed))
      drafts.delete(place)
      setProblem('')
      refreshNow('threads.show')
      onSent(threadId)
    } catch (error) {
      const { message, code } = asProblem(error)
      const hint = code === 'daemon/no-answer' ? '. Your text is still here; sending it again will not make it two' : ''
      setProblem(`Not sent: ${message}${hint}.`)
    }
    setBusy(false)
  }
  return (
    <form
      class="border-line bg-ground shrink-0 border-t px-4 py-3 md:px-6"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <div class="mx-auto flex max-w-3xl items-end gap-2">
        <textarea
          ref={box}
          id="text"
          class="field max-h-48 [field-sizing:content] resize-none py-1.5"
          rows={1}
          aria-label={placeholder}
          placeholder={placeholder}
          value={text}
          disabled={disabled}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            void send()
          }}
        />
        <button class="button button-main" disabled={busy || disabled || text.trim() === ''}>
          Send
        </button>
      </div>
      <p role="alert" id="send-problem" class="text-bad mx-auto min-h-0 max-w-3xl pt-1 text-sm empty:hidden">
        {problem}
      </p>
    </form>
  )
}

/** The first message of a conversation, to one of the agents. */
export function NewThread() {
  const agents = useResource('agents.list', {}).data.value?.items ?? []
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const agent = chosen ?? agents[0]?.name
  return (
    <div class="border-line bg-sunken border-b">
      <div class="mx-auto flex max-w-3xl items-center gap-2 px-4 pt-3 md:px-0">
        <label class="text-quiet" for="agent">
          To
        </label>
        <select
          id="agent"
          class="field max-w-60"
          value={agent}
          onChange={(event) => setChosen(event.currentTarget.value)}
        >
          {agents.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        {agents.length === 0 && <span class="text-quiet">no agent is in the configuration</span>}
      </div>
      <Composer
        to={agent === undefined ? undefined : { agent }}
        placeholder="What should it do?"
        onSent={(threadId) => go(threadPath(threadId))}
      />
    </div>
  )
}
