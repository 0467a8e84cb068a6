import { useEffect, useRef, useState } from 'preact/hooks'

import type { Approval } from '../api/shapes.ts'
import { brief, shortId, visible } from '../look/words.ts'
import { Arguments } from '../parts/arguments.tsx'
import { Decide } from '../parts/decide.tsx'
import { Desk, nextOpen, useWasRead } from '../parts/desk.tsx'
import { EditCall } from '../parts/edit-call.tsx'
import { ModelSaid } from '../parts/model-said.tsx'
import { Trouble, Waiting } from '../parts/page.tsx'
import { Ago, Empty, Fact, Id, Key, Seen, State } from '../parts/small.tsx'
import { decide, decided } from '../state/decide.ts'
import type { Decision } from '../state/decide.ts'
import { useKeys } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { go } from '../state/router.ts'
import { may } from '../state/session.ts'
import { narrow } from '../state/theme.ts'

/** Those that wait, and those that were decided here meanwhile, each where it stood. */
function useMatters() {
  const { data, problem } = useResource('approvals.list', {}, ['approval.', 'run.finished'])
  const seen = useRef(new Map<string, Approval>())
  const waiting = data.value?.items
  for (const each of waiting ?? []) seen.current.set(each.id, each)
  const open = new Set(waiting?.map(({ id }) => id))
  const items = [...seen.current.values()].filter(({ id }) => open.has(id) || decided.value.has(id))
  return { items, open, problem, loaded: waiting !== undefined }
}

export function Approvals({ id }: { readonly id?: string | undefined }) {
  const { items, open, problem, loaded } = useMatters()
  const isOpen = (approval: Approval) => open.has(approval.id) && !decided.value.has(approval.id)
  const chosen = id ?? (narrow.value ? undefined : (items.find(isOpen) ?? items[0])?.id)
  const listed = items.find((each) => each.id === chosen)
  const advance = () => {
    const at = items.findIndex((each) => each.id === chosen)
    const next = nextOpen(items, isOpen, at)
    if (next !== undefined) go(`/approvals/${next.id}`, { replace: true })
    else if (narrow.value) go('/approvals', { replace: true })
  }
  if (!loaded)
    return (
      <Desk
        {...blank}
        trouble={<Trouble problem={problem.value} />}
        empty={
          <div class="p-4">
            <Waiting />
          </div>
        }
      />
    )
  return (
    <Desk
      title="Approvals"
      place="/approvals"
      items={items}
      chosen={chosen}
      id={(approval) => approval.id}
      isOpen={isOpen}
      row={(approval) => <Row approval={approval} />}
      trouble={<Trouble problem={problem.value} />}
      empty={<Empty title="Nothing waits for a decision">A write that no rule allows asks here first.</Empty>}
    >
      {chosen !== undefined && <One key={chosen} id={chosen} listed={listed} onDecided={advance} />}
    </Desk>
  )
}

const blank = {
  title: 'Approvals',
  place: '/approvals',
  items: [] as readonly Approval[],
  chosen: undefined,
  id: ({ id }: Approval) => id,
  isOpen: () => true,
  row: () => null,
  children: null,
} as const

const Row = ({ approval }: { readonly approval: Approval }) => (
  <>
    <span class="flex items-center gap-2">
      <State state={decided.value.get(approval.id) ?? 'waiting'} />
      <span class="text-quiet ml-auto text-xs">
        <Ago at={approval.askedAt} />
      </span>
    </span>
    <span class="mt-0.5 block truncate font-mono text-sm font-semibold">{visible(approval.tool)}</span>
    <span class="text-quiet block truncate text-xs">
      {visible(approval.agent)} · {brief(approval.input)}
    </span>
  </>
)

interface OneProps {
  readonly id: string
  readonly listed: Approval | undefined
  readonly onDecided: () => void
}

/** A link may name one that has been decided long ago: it is shown with what became of it. */
function One({ id, listed, onDecided }: OneProps) {
  const { data, problem } = useResource('approvals.show', { approval: id }, ['approval.'])
  const approval = data.value ?? listed
  if (approval === undefined) return <Trouble problem={problem.value} />
  return <Matter approval={approval} onDecided={onDecided} />
}

function Matter({ approval, onDecided }: { readonly approval: Approval; readonly onDecided: () => void }) {
  const [note, setNote] = useState('')
  const wasRead = useWasRead(approval.id)
  const pending = approval.state === 'pending' && !decided.value.has(approval.id)
  const can = pending && may('approve')
  const busy = useRef(false)
  useEffect(() => {
    busy.current = false
  }, [approval.id])
  const press = (decision: Decision) => async () => {
    if (!wasRead || busy.current) return
    busy.current = true
    if (await decide(approval, decision, note)) onDecided()
    busy.current = false
  }
  const always = approval.always !== undefined && 'rule' in approval.always ? approval.always.rule : undefined
  useKeys(
    'This decision',
    can
      ? {
          a: ['approve', () => void press('approve')()],
          s: ['skip: not this one', () => void press('skip')()],
          d: ['deny', () => void press('deny')()],
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
      {can && <Change approval={approval} note={note} />}
      <ModelSaid text={approval.modelSaid} />
      <AskedFacts approval={approval} />
      {can && always !== undefined && <Always rule={always} onChoose={() => void press('always')()} />}
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
          <Decide approval={approval} keys ready={wasRead} note={note} onDecided={onDecided} />
        </div>
      ) : (
        <Ended approval={approval} />
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
      <a class="link" href={`/runs/${approval.runId}`} title={approval.runId}>
        <Id id={shortId(approval.runId)} />
      </a>
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

function Ended({ approval }: { readonly approval: Approval }) {
  const state = decided.value.get(approval.id) ?? (approval.state === 'pending' ? 'waiting' : approval.state)
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
const Always = ({ rule, onChoose }: { readonly rule: string; readonly onChoose: () => void }) => (
  <details class="panel">
    <summary class="text-quiet hover:text-ink px-3 py-2 text-sm">Always allow exactly this …</summary>
    <div class="border-line grid gap-2 border-t px-3 py-2">
      <p class="text-sm">It is approved, and this rule is added:</p>
      <p class="bytes">
        <Seen text={rule} />
      </p>
      <p>
        <button type="button" class="button" data-decision="always" onClick={onChoose}>
          Approve and always allow
        </button>
      </p>
    </div>
  </details>
)
