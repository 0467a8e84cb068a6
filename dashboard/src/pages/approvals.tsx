import { useState } from 'preact/hooks'

import type { Approval } from '../api/shapes.ts'
import { visible } from '../look/words.ts'
import { Arguments } from '../parts/arguments.tsx'
import { Decide, useChoosing } from '../parts/decide.tsx'
import type { Choosing } from '../parts/decide.tsx'
import { Desk, useMatters, useWasRead } from '../parts/desk.tsx'
import { EditCall } from '../parts/edit-call.tsx'
import { ModelSaid } from '../parts/model-said.tsx'
import { Trouble } from '../parts/page.tsx'
import { Ago, Empty, Fact, Key, RunLink, Seen, State } from '../parts/small.tsx'
import { decidedSince } from '../state/decide.ts'
import { useKeys } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

const PLACE = '/approvals'

export function Approvals({ id }: { readonly id?: string | undefined }) {
  const asked = useResource('approvals.list', {}, ['approval.', 'run.finished'])
  const matters = useMatters(PLACE, asked, id)
  const { chosen, listed, advance } = matters
  return (
    <Desk
      title="Approvals"
      place={PLACE}
      matters={matters}
      state="waiting"
      since={({ askedAt }) => askedAt}
      empty={<Empty title="Nothing waits for a decision">A write that no rule allows asks here first.</Empty>}
    >
      {chosen !== undefined && <One key={chosen} id={chosen} listed={listed} onDecided={advance} />}
    </Desk>
  )
}

interface OneProps {
  readonly id: string
  readonly listed: Approval | undefined
  readonly onDecided: () => void
}

/** A link may name one that has been decided long ago: it is shown with what became of it. */
function One({ id, listed, onDecided }: OneProps) {
  const { data, asOf, problem } = useResource('approvals.show', { approval: id }, ['approval.'])
  const approval = data.value ?? listed
  if (approval === undefined) return <Trouble problem={problem.value} />
  return <Matter approval={approval} said={decidedSince(id, asOf.value)} onDecided={onDecided} />
}

interface MatterProps {
  readonly approval: Approval
  /** What was decided here a moment ago. */
  readonly said: string | undefined
  readonly onDecided: () => void
}

function Matter({ approval, said, onDecided }: MatterProps) {
  const [note, setNote] = useState('')
  const can = approval.state === 'pending' && said === undefined && may('approve')
  const wasRead = useWasRead(`${approval.id} ${can}`)
  const choosing = useChoosing(approval, { note, ready: wasRead, onDecided })
  const always = approval.always !== undefined && 'rule' in approval.always ? approval.always.rule : undefined
  useKeys(
    'This decision',
    can
      ? {
          a: ['approve', () => choosing.choose('approve')],
          s: ['skip: not this one', () => choosing.choose('skip')],
          d: ['deny', () => choosing.choose('deny')],
          m: ['add a note', () => document.getElementById('note')?.focus()],
        }
      : {},
  )
  return (
    <article
      class="mx-auto grid max-w-3xl gap-4"
      data-approval={approval.id}
      data-state={approval.state}
      data-read={wasRead}
    >
      <header>
        <p class="text-quiet text-sm">
          <strong class="text-ink">{visible(approval.agent)}</strong> wants to{' '}
          {approval.effect === 'write' ? 'write' : 'read'} with
        </p>
        <h2 class="mt-0.5 font-mono text-lg font-semibold">{visible(approval.tool)}</h2>
      </header>
      <Arguments shown={approval.shown} />
      {can && approval.editable === true && <Change approval={approval} note={note} />}
      {can && approval.editable === false && (
        <p class="text-quiet text-sm">
          It cannot be changed from here. Skip it with a note that says what it should be instead: the model reads that.
        </p>
      )}
      <ModelSaid text={approval.modelSaid} />
      <AskedFacts approval={approval} />
      {can && always !== undefined && <Always rule={always} choosing={choosing} />}
      {can ? (
        <div class="border-line bg-ground sticky bottom-0 -mx-1 grid gap-2 border-t px-1 pt-3 pb-4">
          <input
            id="note"
            class="field"
            placeholder="A note for the agent (optional)"
            aria-label="A note for the agent"
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
            maxLength={200}
          />
          <Decide choosing={choosing} keys />
        </div>
      ) : (
        <Ended approval={approval} said={said} />
      )}
    </article>
  )
}

/** The arguments can be changed before anything is done; what they become asks afresh. */
function Change({ approval, note }: { readonly approval: Approval; readonly note: string }) {
  const [editing, setEditing] = useState(false)
  useKeys('Its input', { e: ['change the call', () => setEditing(true)] })
  return (
    <p>
      <button type="button" class="button" data-edit="open" onClick={() => setEditing(true)}>
        Change it … <Key>e</Key>
      </button>
      {editing && <EditCall approval={approval} note={note} onClose={() => setEditing(false)} />}
    </p>
  )
}

const AskedFacts = ({ approval }: { readonly approval: Approval }) => (
  <dl class="grid grid-cols-2 gap-3 sm:grid-cols-4">
    <Fact name="Asked">
      <Ago at={approval.askedAt} />
    </Fact>
    <Fact name="Expires">
      <Ago at={approval.expiresAt} />
    </Fact>
    <Fact name="Because">{visible(approval.askedBy)}</Fact>
    <Fact name="Run">
      <RunLink id={approval.runId} />
    </Fact>
    <Fact name="Digest of these bytes">
      <span class="font-mono text-xs" title={approval.digest}>
        {approval.digest.slice(0, 20)}…
      </span>
    </Fact>
    {approval.hidden !== undefined && <Fact name="Secret, not shown">{approval.hidden} of its values</Fact>}
  </dl>
)

/** What expired was decided by nobody. */
const whoDecided = ({ by, via }: NonNullable<Approval['decided']>): string =>
  by === null ? '' : `by ${by}${via === null ? '' : `, via ${via}`},`

function Ended({ approval, said }: Pick<MatterProps, 'approval' | 'said'>) {
  const state = said ?? (approval.state === 'pending' ? 'waiting' : approval.state)
  return (
    <p class="flex min-h-10 items-center gap-3 pb-4">
      <State state={state} />
      {approval.decided !== undefined && (
        <span class="text-quiet">
          {visible(whoDecided(approval.decided))} <Ago at={approval.decided.at} />
        </span>
      )}
      <span class="text-quiet ml-auto">
        <Key>j</Key> next
      </span>
    </p>
  )
}

/** A yes to this one, and to every call that is exactly like it: folded away, so that nobody says it by the way. */
const Always = ({ rule, choosing: { busy, choose } }: { readonly rule: string; readonly choosing: Choosing }) => (
  <details class="panel">
    <summary class="text-quiet hover:text-ink px-3 py-2 text-sm">Always allow exactly this …</summary>
    <div class="border-line grid gap-2 border-t px-3 py-2">
      <p class="text-sm">It is approved, and this rule is added:</p>
      <p class="bytes">
        <Seen text={rule} />
      </p>
      <p>
        <button type="button" class="button" data-decision="always" disabled={busy} onClick={() => choose('always')}>
          Approve and always allow
        </button>
      </p>
    </div>
  </details>
)
