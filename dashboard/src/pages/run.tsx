import { call } from '../api/client.ts'
import type { Statement, Step, WholeRun } from '../api/shapes.ts'
import { isActive, shownState } from '../look/states.ts'
import { timelineOf } from '../look/timeline.ts'
import { count, money, shortId, visible } from '../look/words.ts'
import { ActionCard } from '../parts/action-card.tsx'
import { Bytes } from '../parts/bytes.tsx'
import { PageFrame, Section, Trouble, Waiting } from '../parts/page.tsx'
import { SilentHost } from '../parts/silent.tsx'
import { Ago, Fact, Id, Key, Lasted, Mark, Seen, State } from '../parts/small.tsx'
import { Waterfall } from '../parts/waterfall.tsx'
import { WorkspacePanel } from '../parts/workspace.tsx'
import { now } from '../state/clock.ts'
import { useKeys } from '../state/keys.ts'
import { said } from '../state/live.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'
import { subject } from './runs.tsx'

export function RunPage({ id }: { readonly id: string }) {
  const { data, problem } = useResource('runs.show', { run: id }, [id])
  const run = data.value
  const up = ['/runs', 'runs'] as const
  if (run === undefined)
    return (
      <PageFrame title="Run" up={up}>
        <Trouble problem={problem.value} />
        {problem.value === undefined && <Waiting />}
      </PageFrame>
    )
  const title = (
    <span class="flex min-w-0 items-center gap-3">
      <span class="truncate">{run.request.kind === 'agent' ? visible(run.agent) : subject(run)}</span>
      <span class="shrink-0">
        <State state={shownState(run)} note={run.state === 'parked' ? run.parkedFor : run.code} />
      </span>
    </span>
  )
  return (
    <PageFrame title={title} up={up} side={<Cancel run={run} />}>
      <div class="mx-auto max-w-5xl">
        <SilentHost run={run} />
        <Summary run={run} />
        <WorkspacePanel workspace={run.workspace} />
        <Outcome run={run} />
        <Timeline run={run} />
        <StatementPanel run={run} />
        <Steps run={run} />
      </div>
    </PageFrame>
  )
}

function Cancel({ run }: { readonly run: WholeRun }) {
  const cancel = async () => {
    await attempt('The run was not cancelled', () => call('runs.cancel', { run: run.id }))
    refreshNow('runs.show')
  }
  const can = isActive(run) && run.cancelRequestedAt === undefined && may('operate')
  useKeys('This run', can ? { x: ['cancel it', () => void cancel()] } : {})
  if (!can) return null
  return (
    <button type="button" class="button button-bad cancel" onClick={() => void cancel()}>
      Cancel <Key>x</Key>
    </button>
  )
}

const Summary = ({ run }: { readonly run: WholeRun }) => (
  <dl class="mb-6 grid grid-cols-2 gap-x-6 gap-y-3 sm:grid-cols-4 lg:grid-cols-7">
    <Fact name="Agent">{visible(run.agent)}</Fact>
    <Fact name="Thread">
      <a class="link" href={`/threads/${run.threadId}`} title={visible(run.threadId)}>
        <Id id={visible(shortId(run.threadId))} />
      </a>
    </Fact>
    <Fact name="Began">
      <Ago at={run.startedAt ?? run.createdAt} />
    </Fact>
    <Fact name="Took">
      <Lasted from={run.startedAt ?? run.createdAt} to={run.endedAt} />
    </Fact>
    <Fact name="Attempts">{run.attempt}</Fact>
    <Fact name="Tokens">{`${count(run.usage.inputTokens)} in, ${count(run.usage.outputTokens)} out`}</Fact>
    <Fact name="Cost">{money(run.usage.costUsd)}</Fact>
  </dl>
)

function Outcome({ run }: { readonly run: WholeRun }) {
  const { error, result, lateResults, cancel } = run
  const shown = run.request.kind === 'command' ? result : undefined
  if (error === undefined && shown === undefined && lateResults === undefined && cancel === undefined) return null
  return (
    <div class="mb-6 grid gap-3">
      {cancel !== undefined && (
        <p>
          Cancelled by {visible(cancel.by)}
          {cancel.reason === undefined ? '' : visible(`: ${cancel.reason}`)}
        </p>
      )}
      {error !== undefined && (
        <Bytes value={error} label={`Why it ${run.state === 'cancelled' ? 'was cancelled' : 'failed'}`} />
      )}
      {shown !== undefined && <Bytes value={shown} label="Result" />}
      {lateResults?.map((late, index) => (
        <Bytes key={index} value={late} label="A result that came too late: kept, not applied" />
      ))}
    </div>
  )
}

function Timeline({ run }: { readonly run: WholeRun }) {
  const events = useResource('runs.events', { run: run.id, limit: 1000 }, [run.id])
  // A run that has ended does not need the clock.
  const instant = isActive(run) ? now.value : 0
  const bars = timelineOf(run, events.data.value?.items ?? [], instant)
  const pick = (action: string) => {
    const card = document.getElementById(action) as HTMLDetailsElement | null
    if (card === null) return
    card.open = true
    card.scrollIntoView({ block: 'center' })
    card.querySelector('summary')?.focus()
  }
  return (
    <Section title="Timeline">
      <Waterfall bars={bars} onPick={pick} />
    </Section>
  )
}

/** What the model was shown and said, with the calls that it made. */
function Steps({ run }: { readonly run: WholeRun }) {
  const steps = (run.steps ?? []) as readonly Step[]
  const actionsOf = Map.groupBy(run.actions ?? [], ({ step }) => step)
  const live = said.value.get(run.id)
  // Those of a function: no model asked for them.
  const own = actionsOf.get(undefined) ?? []
  if (steps.length === 0 && live === undefined && own.length === 0) return null
  return (
    <Section title="Steps">
      <ol class="grid gap-3">
        {own.map((action) => (
          <li key={action.id} class="min-w-0">
            <ActionCard action={action} />
          </li>
        ))}
        {steps.map((step) => (
          <li key={step.seq} class="grid min-w-0 gap-2">
            <StepText step={step} />
            {(actionsOf.get(step.seq) ?? []).map((action) => (
              <ActionCard key={action.id} action={action} />
            ))}
          </li>
        ))}
        {live !== undefined && !live.ended && isActive(run) && (
          <li class="reply live break-words whitespace-pre-wrap">
            <Seen text={live.text} />
          </li>
        )}
      </ol>
    </Section>
  )
}

const WHO: Readonly<Record<Step['kind'], string>> = { user: 'To the model', assistant: 'The model', summary: 'Summary' }

const StepText = ({ step: { kind, text = '', usage, at } }: { readonly step: Step }) => (
  <div class="border-line border-l-2 pl-3">
    <p class="text-quiet text-xs">
      {WHO[kind]} · <Ago at={at} />
      {usage !== undefined &&
        ` · ${count(usage.inputTokens)} → ${count(usage.outputTokens)} tokens · ${money(usage.costUsd)}`}
    </p>
    {text !== '' && (
      <p class="break-words whitespace-pre-wrap">
        <Seen text={text} />
      </p>
    )}
  </div>
)

/** Every effect that it had on the world. */
function StatementPanel({ run }: { readonly run: WholeRun }) {
  const { data } = useResource('runs.statement', { run: run.id }, [run.id])
  const statement = data.value
  if (statement === undefined || (run.request.kind !== 'agent' && statement.effects.length === 0)) return null
  const side = statement.final ? (
    <span class="text-quiet text-xs">final: nothing will be added</span>
  ) : (
    <span class="text-warn text-xs font-medium">not final yet</span>
  )
  return (
    <Section title="What it did to the world" side={side}>
      <NotTakenBack statement={statement} />
      <div class="panel overflow-hidden">
        <Effects statement={statement} />
      </div>
    </Section>
  )
}

const DISCARDED = ['discarding', 'discarded']

/** Git takes back files and nothing else. */
function NotTakenBack({ statement: { workspace, effects } }: { readonly statement: Statement }) {
  if (workspace === undefined || !DISCARDED.includes(workspace.state) || effects.length === 0) return null
  return (
    <p class="text-warn mb-2" data-not-taken-back={effects.length}>
      Its files were discarded. What is listed here is outside of them, and nobody took it back.
    </p>
  )
}

const PENDING = ['proposed', 'waiting', 'approved']

function Effects({ statement: { effects, withoutEffect, children } }: { readonly statement: Statement }) {
  if (effects.length + withoutEffect.length + children.length === 0)
    return <p class="text-quiet px-3 py-3">It wrote nothing.</p>
  return (
    <ul>
      {effects.map(({ actionId, tool, state, input, allowedBy }) => (
        <EffectLine
          key={actionId}
          state={state}
          tool={tool}
          input={input}
          note={allowedBy === undefined ? '' : `allowed by ${allowedBy.by}`}
        />
      ))}
      {withoutEffect.map(({ actionId, tool, state, input, why }) => (
        <EffectLine
          key={actionId}
          state={state}
          tool={tool}
          input={input}
          note={`${PENDING.includes(state) ? 'not done yet' : 'certainly not done'}${why === undefined ? '' : `: ${why}`}`}
        />
      ))}
      {children.map(({ runId, agent, state, effects: done, inDoubt }) => (
        <li key={runId} class="row-line last:border-0">
          <a class="hover:bg-hover flex h-9 items-center gap-2 px-3" href={`/runs/${runId}`}>
            <Mark state={state} />
            {visible(agent)}{' '}
            <span class="text-quiet">{`${done} effects, ${inDoubt} in doubt, in a run that it started`}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

interface EffectProps {
  readonly state: string
  readonly tool: string
  readonly input: unknown
  readonly note: string
}

const EffectLine = ({ state, tool, input, note }: EffectProps) => (
  <li class="row-line flex min-h-9 items-center gap-2 px-3 last:border-0">
    <Mark state={state} />
    <span class="shrink-0 font-mono text-sm font-semibold">{visible(tool)}</span>
    <span class="text-quiet min-w-0 flex-1 truncate font-mono text-xs">
      <Seen text={JSON.stringify(input)} />
    </span>
    <span class="text-quiet max-w-[40%] truncate text-xs max-md:hidden" title={visible(note)}>
      {visible(note)}
    </span>
    <State state={state} />
  </li>
)
