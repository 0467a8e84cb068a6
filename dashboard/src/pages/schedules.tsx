import { useSignal } from '@preact/signals'

import { call } from '../api/client.ts'
import type { Occurrence, Schedule } from '../api/shapes.ts'
import { lookOf } from '../look/states.ts'
import { brief, exact, many, visible } from '../look/words.ts'
import { cutShort, daysAround, ruleWords } from '../look/calendar.ts'
import type { Day } from '../look/calendar.ts'
import { PageFrame, Section, Trouble, Waiting } from '../parts/page.tsx'
import { Ago, Empty, Mark, State } from '../parts/small.tsx'
import { now } from '../state/clock.ts'
import { useKeys } from '../state/keys.ts'
import { COMING, refreshSchedules, useOccurrences, useSchedules } from '../state/schedules.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'

export function Schedules({ id }: { readonly id?: string | undefined }) {
  const { data, problem } = useSchedules()
  const past = useOccurrences().data.value?.items ?? []
  const shown = data.value?.items
  return (
    <PageFrame title="Schedules">
      <Trouble problem={problem.value} />
      {shown === undefined ? (
        problem.value === undefined && <Waiting />
      ) : shown.length === 0 ? (
        <Empty title="Nothing is scheduled">
          Agents plan follow-ups, and people add jobs with <code class="font-mono">holdfast schedule add</code>.
        </Empty>
      ) : (
        <>
          <Calendar schedules={shown} past={past} />
          <Section title="Schedules">
            <ul class="panel overflow-hidden">
              {shown.map((schedule) => (
                <Row
                  key={schedule.id}
                  schedule={schedule}
                  own={past.filter(({ scheduleId }) => scheduleId === schedule.id)}
                  open={schedule.id === id}
                />
              ))}
            </ul>
          </Section>
        </>
      )}
    </PageFrame>
  )
}

type ScheduleVerb = 'pause' | 'resume' | 'run-now' | 'remove'

async function act(schedule: Schedule, verb: ScheduleVerb): Promise<void> {
  const well: Readonly<Record<ScheduleVerb, string>> = {
    pause: `${schedule.name} is paused.`,
    resume: `${schedule.name} goes on.`,
    'run-now': `${schedule.name} fires now.`,
    remove: `${schedule.name} is removed.`,
  }
  await attempt(schedule.name, () => call(`schedules.${verb}`, { schedule: schedule.id }), well[verb])
  refreshSchedules()
}

function target({ target: to }: Schedule): string {
  if (to.kind === 'command') return visible(to.argv.join(' '))
  if (to.kind === 'agent') return visible(`${to.agent}: ${brief(to.text)}`)
  if (to.kind === 'call') return visible(`${to.function}()`)
  return visible(to.kind === 'webhook' ? to.url : `to ${to.threadId}: ${brief(to.text)}`)
}

interface RowProps {
  readonly schedule: Schedule
  /** When it fired. */
  readonly own: readonly Occurrence[]
  readonly open: boolean
}

function Row({ schedule, own, open }: RowProps) {
  return (
    <li class="row-line last:border-0">
      <details open={open} name="schedule">
        <summary class="hover:bg-hover grid min-h-12 grid-cols-[6rem_1fr_auto] items-center gap-x-4 px-3 py-1.5 md:grid-cols-[6.5rem_minmax(0,12rem)_minmax(0,1fr)_6rem_auto]">
          <State state={schedule.state} />
          <span class="truncate font-medium">
            {visible(schedule.name)}
            <span class="text-quiet block truncate text-xs font-normal">{visible(ruleWords(schedule.rule))}</span>
          </span>
          <span class="text-quiet truncate font-mono text-xs max-md:hidden">{target(schedule)}</span>
          <span class="text-quiet text-right text-sm max-md:hidden">
            {schedule.nextAt === undefined || schedule.state !== 'active' ? '–' : <Ago at={schedule.nextAt} />}
          </span>
          <Buttons schedule={schedule} />
        </summary>
        <div class="border-line bg-sunken border-t px-3 py-3">
          {schedule.reason !== undefined && <p class="text-warn mb-2">{visible(schedule.reason)}</p>}
          {schedule.options.why !== undefined && <p class="text-quiet mb-2">Why: {visible(schedule.options.why)}</p>}
          <p class="mb-2 font-mono text-xs wrap-anywhere md:hidden">{target(schedule)}</p>
          <History own={own} schedule={schedule} />
        </div>
      </details>
    </li>
  )
}

function Buttons({ schedule }: { readonly schedule: Schedule }) {
  const { state } = schedule
  if (!may('operate') || (state !== 'active' && state !== 'paused')) return <span />
  const press = (verb: ScheduleVerb) => (event: Event) => {
    event.preventDefault()
    void act(schedule, verb)
  }
  return (
    <span class="flex gap-1.5">
      <button type="button" class="button" onClick={press('run-now')}>
        Run now
      </button>
      <button type="button" class="button w-20 max-md:hidden" onClick={press(state === 'paused' ? 'resume' : 'pause')}>
        {state === 'paused' ? 'Resume' : 'Pause'}
      </button>
    </span>
  )
}

function History({ own, schedule }: { readonly own: readonly Occurrence[]; readonly schedule: Schedule }) {
  const press = (verb: ScheduleVerb) => () => void act(schedule, verb)
  return (
    <>
      {own.length === 0 && <p class="text-quiet">It has not fired yet.</p>}
      <ul class="grid gap-1">
        {own.slice(0, 12).map((each) => (
          <li key={each.id} class="flex min-h-6 items-center gap-3 text-sm">
            <State state={each.state} />
            <Ago at={each.dueAt} class="text-quiet" />
            <span class="text-quiet min-w-0 truncate">{visible(each.reason ?? each.error ?? '')}</span>
            {each.attempts > 1 && <span class="text-quiet">{many(each.attempts, 'try', 'tries')}</span>}
            {each.runId !== undefined && (
              <a class="link ml-auto" href={`/runs/${each.runId}`}>
                Run
              </a>
            )}
          </li>
        ))}
      </ul>
      {may('operate') && schedule.state !== 'ended' && (
        <p class="mt-3 flex gap-2">
          <button
            type="button"
            class="button md:hidden"
            onClick={press(schedule.state === 'paused' ? 'resume' : 'pause')}
          >
            {schedule.state === 'paused' ? 'Resume' : 'Pause'}
          </button>
          <button type="button" class="button button-bad" onClick={press('remove')}>
            Remove
          </button>
        </p>
      )}
    </>
  )
}

/** Four weeks: what was, and what comes. */
function Calendar({
  schedules: all,
  past,
}: {
  readonly schedules: readonly Schedule[]
  readonly past: readonly Occurrence[]
}) {
  const offset = useSignal(0)
  useKeys('Calendar', {
    '[': ['a week back', () => (offset.value -= 1)],
    ']': ['a week on', () => (offset.value += 1)],
  })
  const names = new Map([
    ...past.map(({ scheduleId, schedule }) => [scheduleId, visible(schedule.name)] as const),
    ...all.map(({ id, name }) => [id, visible(name)] as const),
  ])
  const cut = cutShort(now.value, offset.value, all, COMING)
  const days = daysAround(now.value, offset.value, all, past)
  const side = (
    <span class="flex gap-1">
      <button type="button" class="button button-plain" onClick={() => (offset.value -= 1)} aria-label="A week back">
        ←
      </button>
      <button type="button" class="button button-plain" onClick={() => (offset.value = 0)}>
        Today
      </button>
      <button type="button" class="button button-plain" onClick={() => (offset.value += 1)} aria-label="A week on">
        →
      </button>
    </span>
  )
  return (
    <Section title="Calendar" side={side}>
      <ol class="border-line bg-line grid grid-cols-7 gap-px overflow-hidden rounded-lg border">
        {days.map((day) => (
          <DayCell key={day.key} day={day} names={names} />
        ))}
      </ol>
      {cut.length > 0 && (
        <p class="text-quiet mt-2 text-sm" data-cut={cut.length}>
          Of {visible(cut.map(({ name }) => name).join(', '))} the next {COMING} are shown.
        </p>
      )}
    </Section>
  )
}

const SHOWN = 4

function DayCell({ day, names }: { readonly day: Day; readonly names: ReadonlyMap<string, string> }) {
  const { things } = day
  return (
    <li class={`min-h-20 min-w-0 p-1.5 ${day.isToday ? 'bg-accent-soft' : 'bg-raised'}`}>
      <p class={`text-xs ${day.isToday ? 'text-accent font-semibold' : 'text-quiet'}`}>
        <span class="max-md:hidden">{day.weekday} </span>
        <span class="max-md:hidden">{day.label}</span>
        <span class="md:hidden">{day.short}</span>
      </p>
      <ul class="mt-1 max-md:flex max-md:flex-wrap">
        {things.slice(0, SHOWN).map(({ scheduleId, state, at, count }) => (
          <li
            key={`${scheduleId} ${at} ${state}`}
            class="flex min-w-0 items-center gap-1 text-xs"
            title={`${names.get(scheduleId) ?? scheduleId}: ${lookOf(state).word}, ${exact(at)}`}
          >
            <Mark state={state} />
            <span class="sr-only">{lookOf(state).word}</span>
            <span class="truncate max-md:sr-only">{names.get(scheduleId) ?? scheduleId}</span>
            {count > 1 && <span class="text-quiet shrink-0 max-md:sr-only">×{count}</span>}
          </li>
        ))}
      </ul>
      {things.length > SHOWN && <p class="text-quiet text-xs">{things.length - SHOWN} more</p>}
    </li>
  )
}
