import { call } from '../api/client.ts'
import type { Step, WholeRun } from '../api/shapes.ts'
import { subject } from '../look/runs.ts'
import { isActive, shownRun } from '../look/states.ts'
import { timelineOf } from '../look/timeline.ts'
import { count, money, visible } from '../look/words.ts'
import { ActionCard } from '../parts/action-card.tsx'
import { Outcome } from '../parts/outcome.tsx'
import { PageFrame, Section, Unread } from '../parts/page.tsx'
import { SilentHost } from '../parts/silent.tsx'
import { StatementPanel } from '../parts/statement.tsx'
import { Ago, Fact, Key, Lasted, Seen, State, ThreadLink } from '../parts/small.tsx'
import { Waterfall } from '../parts/waterfall.tsx'
import { WorkspacePanel } from '../parts/workspace.tsx'
import { now } from '../state/clock.ts'
import { useKeys } from '../state/keys.ts'
import { said } from '../state/live.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'

export function RunPage({ id }: { readonly id: string }) {
  const { data, problem } = useResource('runs.show', { run: id }, [id])
  const run = data.value
  const up = ['/runs', 'runs'] as const
  if (run === undefined) return <Unread title="Run" up={up} problem={problem.value} />
  const title = (
    <span class="flex min-w-0 items-center gap-3">
      <span class="max-w-[70%] shrink-0 truncate">
        {run.request.kind === 'agent' ? visible(run.agent) : subject(run)}
      </span>
      <span class="flex min-w-0">
        <State state={shownRun(run)} note={run.state === 'parked' ? run.parkedFor : run.code} />
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
      <ThreadLink id={run.threadId} />
    </Fact>
    <Fact name="Began">
      <Ago at={run.startedAt ?? run.createdAt} />
    </Fact>
    <Fact name="Took">
      <Lasted from={run.startedAt ?? run.createdAt} to={run.endedAt} />
    </Fact>
    <Fact name="Attempts">{run.attempt}</Fact>
    <Fact name="Tokens">{`${count(run.usage.inputTokens)} → ${count(run.usage.outputTokens)}`}</Fact>
    <Fact name="Cost">{money(run.usage.costUsd)}</Fact>
  </dl>
)

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
      <Waterfall bars={bars} hasEnded={!isActive(run)} onPick={pick} />
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
          <li class="reply live wrap-anywhere whitespace-pre-wrap">
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
      <p class="wrap-anywhere whitespace-pre-wrap">
        <Seen text={text} />
      </p>
    )}
  </div>
)
