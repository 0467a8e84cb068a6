import { useState } from 'preact/hooks'

import type { Doubt } from '../api/shapes.ts'
import { isActive, lookOf } from '../look/states.ts'
import { many, visible } from '../look/words.ts'
import { Bytes } from '../parts/bytes.tsx'
import { Desk, useMatters, useWasRead } from '../parts/desk.tsx'
import { ModelSaid } from '../parts/model-said.tsx'
import { Trouble } from '../parts/page.tsx'
import { Ago, Empty, Fact, Key, RunLink, State } from '../parts/small.tsx'
import { decidedSince, settle } from '../state/decide.ts'
import type { Resolution } from '../state/decide.ts'
import { useKeys } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

const PLACE = '/doubts'

export function Doubts({ id }: { readonly id?: string | undefined }) {
  const listing = useResource('doubts.list', {}, ['action.settled', 'doubt.', 'run.finished'])
  const matters = useMatters(PLACE, listing, id)
  const { chosen, listed, advance } = matters
  return (
    <Desk
      title="Doubts"
      place={PLACE}
      matters={matters}
      state="in_doubt"
      since={({ startedAt, createdAt }) => startedAt ?? createdAt}
      empty={
        <Empty title="Nothing is in doubt">
          A write that was cut off in the middle, and of which nobody knows whether it happened, waits here.
        </Empty>
      }
    >
      {chosen !== undefined && <One key={chosen} id={chosen} listed={listed} onSettled={advance} />}
    </Desk>
  )
}

interface OneProps {
  readonly id: string
  readonly listed: Doubt | undefined
  readonly onSettled: () => void
}

function One({ id, listed, onSettled }: OneProps) {
  const { data, asOf, problem } = useResource('doubts.show', { doubt: id }, ['doubt.', 'action.settled'])
  const doubt = data.value ?? listed
  if (doubt === undefined) return <Trouble problem={problem.value} />
  return <Matter doubt={doubt} said={decidedSince(id, asOf.value)} onSettled={onSettled} />
}

const CHOICES: readonly (readonly [Resolution, string, string, string, string])[] = [
  ['happened', 'It happened', 'a', 'button-main', 'its result is recorded as done'],
  ['did-not-happen', 'It did not happen', 'd', '', 'recorded as failed; the agent may try again'],
  ['run-again', 'Run it again', 'r', '', 'performed once more, under the same key'],
  ['give-up', 'Leave it open', 's', 'button-plain', 'the run goes on and is told that nobody knows'],
]

interface MatterProps {
  readonly doubt: Doubt
  /** What was said of it here a moment ago. */
  readonly said: string | undefined
  readonly onSettled: () => void
}

function Matter({ doubt, said, onSettled }: MatterProps) {
  const [why, setWhy] = useState('')
  const [busy, setBusy] = useState(false)
  const state = said ?? (doubt.givenUp === undefined ? doubt.state : 'left_open')
  const can = state === 'in_doubt' && may('approve')
  // One that was done again, and is in doubt again, is another one to read.
  const wasRead = useWasRead(`${doubt.id} ${doubt.tries} ${can}`)
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
          <strong class="text-ink">{visible(doubt.agent)}</strong> started this, and nobody knows how it ended. Did it
          happen?
        </p>
        <h2 class="mt-0.5 font-mono text-lg font-semibold">{visible(doubt.tool)}</h2>
      </header>
      {doubt.input !== null && <Bytes value={doubt.input} label="Exactly what was started" />}
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
          <State state={state} />
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
      <RunLink id={doubt.runId} />
    </Fact>
    <Fact name="Its run is">{lookOf(doubt.runState).word}</Fact>
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
