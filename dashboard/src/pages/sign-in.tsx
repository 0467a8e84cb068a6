import { useState } from 'preact/hooks'

import { refusal, signIn } from '../state/session.ts'

/** A code is short and has been printed; everything longer is a token. */
const CODE_LENGTH = 40

export function SignIn() {
  const [given, setGiven] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    const text = given.trim()
    if (text === '') return
    setBusy(true)
    await signIn(text.length < CODE_LENGTH ? { code: text } : { token: text })
    setBusy(false)
    setGiven('')
  }
  return (
    <main class="grid h-full place-items-center overflow-auto p-4">
      <form class="panel w-full max-w-sm p-6" onSubmit={(event) => void submit(event)}>
        <img src="/icon.svg" alt="" class="mb-4 size-10" />
        <h1 class="mb-1">Sign in to Holdfast</h1>
        <p class="text-quiet mb-4">
          <code class="font-mono">holdfast up</code> prints an address that signs you in. For another browser,{' '}
          <code class="font-mono">holdfast token code</code> prints a new code.
        </p>
        <label class="mb-1 block font-medium" for="secret">
          Code or token
        </label>
        <input
          id="secret"
          class="field font-mono"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={given}
          onInput={(event) => setGiven(event.currentTarget.value)}
          aria-describedby="refusal"
        />
        <p id="refusal" role="alert" class="text-bad my-2 min-h-5 text-sm">
          {refusal.value}
        </p>
        <button class="button button-main w-full" disabled={busy || given.trim() === ''}>
          Sign in
        </button>
      </form>
    </main>
  )
}
