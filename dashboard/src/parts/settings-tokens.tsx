import { useState } from 'preact/hooks'

import { call } from '../api/client.ts'
import type { Scope, Token } from '../api/shapes.ts'
import { field, visible } from '../look/words.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { attempt } from '../state/toast.ts'
import { Bytes } from './bytes.tsx'
import { Section, Trouble, Waiting } from './page.tsx'
import { Ago } from './small.tsx'

const SCOPES: readonly (readonly [Scope, string])[] = [
  ['read', 'read: looks'],
  ['operate', 'operate: sends, stops, cancels'],
  ['approve', 'approve: decides for people'],
  ['record', 'record: for hooks and agents'],
  ['admin', 'admin: everything, and makes tokens'],
]

/** Who may ask: scripts with a token, browsers with a cookie. */
export function TokensPanel() {
  const { data, problem } = useResource('tokens.list', {}, ['token.'])
  const [made, setMade] = useState<{ readonly label: string; readonly text: string } | undefined>(undefined)
  const another = () =>
    attempt('There is no code', async () => {
      const { code } = await call('session.code', {})
      setMade({ label: 'A code that signs one browser in, once', text: code })
    })
  const side = (
    <button type="button" class="button" onClick={() => void another()}>
      Sign in another browser
    </button>
  )
  return (
    <Section title="Tokens and browsers" side={side}>
      <Trouble problem={problem.value} />
      {made !== undefined && (
        <div class="mb-3">
          <Bytes value={made.text} label={made.label} />
        </div>
      )}
      {data.value === undefined ? (
        problem.value === undefined && <Waiting rows={2} />
      ) : (
        <ul class="panel">
          {data.value.items.map((token) => (
            <TokenRow key={token.id} token={token} />
          ))}
          {data.value.items.length === 0 && <li class="text-quiet px-3 py-3">None was made.</li>}
        </ul>
      )}
      <NewToken onMade={(text) => setMade({ label: 'The token. It is shown this once', text })} />
    </Section>
  )
}

function TokenRow({ token: { id, name, kind, scopes, createdAt, usedAt, expiresAt } }: { readonly token: Token }) {
  const revoke = async () => {
    await attempt('It was not revoked', () => call('tokens.revoke', { token: id }), 'It opens nothing any more.')
    refreshNow('tokens.list')
  }
  return (
    <li class="row-line flex min-h-11 flex-wrap items-center gap-x-3 px-3 py-1 last:border-0">
      <span class="min-w-0 flex-1 truncate">
        <span class="font-medium">{visible(name)}</span>{' '}
        <span class="text-quiet">{kind === 'browser' ? 'browser' : scopes.join(', ')}</span>
      </span>
      <span class="text-quiet text-sm max-md:hidden">
        made <Ago at={createdAt} />
        {usedAt !== undefined && (
          <>
            , used <Ago at={usedAt} />
          </>
        )}
        {expiresAt !== undefined && (
          <>
            , ends <Ago at={expiresAt} />
          </>
        )}
      </span>
      <button type="button" class="button button-bad" onClick={() => void revoke()}>
        Revoke
      </button>
    </li>
  )
}

function NewToken({ onMade }: { readonly onMade: (token: string) => void }) {
  const make = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const fields = new FormData(form)
    await attempt('The token was not made', async () => {
      const name = field(fields, 'name')
      const { token } = await call('tokens.create', {
        scopes: [fields.get('scope') as Scope],
        ...(name === '' ? {} : { name }),
      })
      onMade(token)
      form.reset()
    })
    refreshNow('tokens.list')
  }
  return (
    <form class="panel mt-3 grid gap-2 p-3 sm:grid-cols-[1fr_18rem_auto]" onSubmit={(event) => void make(event)}>
      <input class="field" name="name" placeholder="What it is for" aria-label="What it is for" maxLength={100} />
      <select class="field" name="scope" aria-label="Scope">
        {SCOPES.map(([scope, words]) => (
          <option key={scope} value={scope}>
            {words}
          </option>
        ))}
      </select>
      <button class="button">Make a token</button>
    </form>
  )
}
