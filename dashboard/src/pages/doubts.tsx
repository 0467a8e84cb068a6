import { useRef, useState } from 'preact/hooks'

import type { Doubt } from '../api/shapes.ts'
import { brief, many, shortId, visible } from '../look/words.ts'
import { Bytes } from '../parts/bytes.tsx'
import { Desk, nextOpen, useWasRead } from '../parts/desk.tsx'
import { ModelSaid } from '../parts/model-said.tsx'
import { Trouble } from '../parts/page.tsx'
import { Ago, Empty, Fact, Id, Key, State } from '../parts/small.tsx'
import { decided, settle } from '../state/decide.ts'
import type { Resolution } from '../state/decide.ts'
import { useKeys } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { go } from '../state/router.ts'
import { may } from '../state/session.ts'
import { narrow } from '../state/theme.ts'
import { isActive } from '../look/states.ts'

/** Those that wait, and those that were settled here meanwhile, each where it stood. */
function useMatters() {
  const { data, problem } = useResource('doubts.list', {}, ['action.settled', 'doubt.', 'run.finished'])
  const seen = useRef(new Map<string, Doubt>())
  const waiting = data.value?.items
  for (const each of waiting ?? []) seen.current.set(each.id, each)
  const open = new Set(waiting?.map(({ id }) => id))
  const items = [...seen.current.values()].filter(({ id }) => open.has(id) || decided.value.has(id))
  return { items, open, problem, loaded: waiting !== undefined }
}

export function Doubts({ id }: { readonly id?: string | undefined }) {
  const { items, open, problem, loaded } = useMatters()
  const isOpen = (doubt: Doubt) => open.has(doubt.id) && !decided.value.has(doubt.id)
  const chosen = id ?? (narrow.value ? undefined : (items.find(isOpen) ?? items[0])?.id)
  const advance = () => {
    const next = nextOpen(
      items,
      isOpen,
      items.findIndex((each) => each.id === chosen),
    )
    if (next !== undefined) go(`/doubts/${next.id}`, { replace: true })
    else if (narrow.value) go('/doubts', { replace: true })
  }
  return (
    <Desk
      title="Doubts"
      place="/doubts"
      items={items}
      chosen={chosen}
      id={(doubt) => doubt.id}
      isOpen={isOpen}
      row={(doubt) => <Row doubt={doubt} />}
      trouble={<Trouble problem={problem.value} />}
      empty={
        loaded && (
          <Empty title="Nothing is in doubt">
            A write that was cut off in the middle, and of which nobody knows whether it happened, waits here.
          </Empty>
        )
      }
    >
      {chosen !== undefined && (
        <One key={chosen} id={chosen} listed={items.find((each) => each.id === chosen)} onSettled={advance} />
      )}
    </Desk>
  )
}

const Row = ({ doubt }: { readonly doubt: Doubt }) => (
  <>
    <span class="flex items-center gap-2">
      <State state={decided.value.get(doubt.id) ?? 'in_doubt'} />
      <span class="text-quiet ml-auto text-xs">
        <Ago at={doubt.startedAt ?? doubt.createdAt} />
      </span>
    </span>
    <span class="mt-0.5 block truncate font-mono text-sm font-semibold">{visible(doubt.tool)}</span>
    <span class="text-quiet block truncate text-xs">
      {visible(doubt.agent)} · {brief(doubt.input)}
    </span>
  </>
)

interface OneProps {
  readonly id: string
  readonly listed: Doubt | undefined
  readonly onSettled: () => void
}

function One({ id, listed, onSettled }: OneProps) {
  const { data, problem } = useResource('doubts.show', { doubt: id }, ['doubt.', 'action.settled'])
  const doubt = data.value ?? listed
  if (doubt === undefined) return <Trouble problem={problem.value} />
  return <Matter doubt={doubt} onSettled={onSettled} />
}

const CHOICES: readonly (readonly [Resolution, string, string, string, string])[] = [
  ['happened', 'It happened', 'a', 'button-main', 'its result is recorded as done'],
  ['did-not-happen', 'It did not happen', 'd', '', 'recorded as failed; the agent may try again'],
  ['run-again', 'Run it again', 'r', '', 'performed once more, under the same key'],
  ['give-up', 'Leave it open', 's', 'button-plain', 'the run goes on and is told that nobody knows'],
]

function Matter({ doubt, onSettled }: { readonly doubt: Doubt; readonly onSettled: () => void }) {
  const [why, setWhy] = useState('')
  const [busy, setBusy] = useState(false)
  const wasRead = useWasRead(doubt.id)
  const can =
    doubt.state === 'in_doubt' && doubt.givenUp === undefined && !decided.value.has(doubt.id) && may('approve')
  const runEnded = !isActive({ state: doubt.runState })
  const choose = async (resolution: Resolution) => {
    if (!wasRead || busy || (runEnded && resolution === 'run-again')) return
    setBusy(true)
    const well = await settle(doubt, resolution, why)
    setBusy(false)
    if (well) onSettled()
  }
  useKeys(
    'This doubt',
    can ? Object.fromEntries(CHOICES.map(([what, word, key]) => [key, [word, () => void choose(what)] as const])) : {},
  )
  return (
    <article class="mx-auto grid max-w-3xl gap-4" data-doubt={doubt.id} data-state={doubt.state} data-read={wasRead}>
      <header>
        <p class="text-quiet text-sm">
          <strong class="text-ink">{visible(doubt.agent)}</strong> started this, and it was cut off. Did it happen?
        </p>
        <h2 class="mt-0.5 font-mono text-lg font-semibold">{visible(doubt.tool)}</h2>
      </header>
      <Bytes value={doubt.input} label="Exactly what was started" />
      <Bytes
        value={doubt.seen ?? 'Nothing was seen of it: no output, and no probe could say.'}
        label="What was seen of it"
      />
      <ModelSaid text={doubt.modelSaid} />
      <Facts doubt={doubt} />
      {can ? (
        <Settle
          busy={busy || !wasRead}
          runEnded={runEnded}
          why={why}
          onWhy={setWhy}
          onChoose={(what) => void choose(what)}
        />
      ) : (
        <p class="flex min-h-10 items-center gap-3 pb-4">
          <State state={decided.value.get(doubt.id) ?? doubt.state} />
          <span class="text-quiet">{visible(doubt.settledBy ?? doubt.givenUp ?? '')}</span>
        </p>
      )}
    </article>
  )
}

const Facts = ({ doubt }: { readonly doubt: Doubt }) => (
  <dl class="grid grid-cols-2 gap-3 sm:grid-cols-4">
    <Fact name="Started">{doubt.startedAt === undefined ? 'not known' : <Ago at={doubt.startedAt} />}</Fact>
    <Fact name="Tried">{many(doubt.tries, 'time')}</Fact>
    {doubt.allowedBy !== undefined && <Fact name="Allowed by">{visible(doubt.allowedBy.by)}</Fact>}
    <Fact name="Run">
      <a class="link" href={`/runs/${doubt.runId}`} title={doubt.runId}>
        <Id id={shortId(doubt.runId)} />
      </a>{' '}
      <span class="text-quiet">{doubt.runState}</span>
    </Fact>
    <Fact name="Signature">
      <span class="font-mono text-xs" title={doubt.signature}>
        {doubt.signature.slice(0, 16)}…
      </span>
    </Fact>
  </dl>
)

interface SettleProps {
  readonly busy: boolean
  readonly runEnded: boolean
  readonly why: string
  readonly onWhy: (why: string) => void
  readonly onChoose: (resolution: Resolution) => void
}

const Settle = ({ busy, runEnded, why, onWhy, onChoose }: SettleProps) => (
  <div class="border-line bg-ground sticky bottom-0 -mx-1 grid gap-2 border-t px-1 pt-3 pb-4">
    <input
      id="why"
      class="field"
      placeholder="How you know (optional)"
      aria-label="How you know"
      value={why}
      onInput={(event) => onWhy(event.currentTarget.value)}
      maxLength={200}
    />
    <div class="flex flex-wrap gap-2">
      {CHOICES.map(([what, word, key, look, means]) => (
        <button
          key={what}
          type="button"
          class={`button ${look}`}
          title={means}
          data-resolution={what}
          disabled={busy || (runEnded && what === 'run-again')}
          onClick={() => onChoose(what)}
        >
          {word} <Key>{key}</Key>
        </button>
      ))}
    </div>
  </div>
)
