import type { Statement, WholeRun } from '../api/shapes.ts'
import { visible } from '../look/words.ts'
import { useResource } from '../state/resource.ts'
import { Section } from './page.tsx'
import { Mark, Seen, State } from './small.tsx'

/** Every effect that it had on the world. */
export function StatementPanel({ run }: { readonly run: WholeRun }) {
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

function Effects({ statement: { effects, withoutEffect, children, final } }: { readonly statement: Statement }) {
  if (effects.length + withoutEffect.length + children.length === 0)
    return <p class="text-quiet px-3 py-3">{final ? 'It wrote nothing.' : 'It has written nothing yet.'}</p>
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
      <Seen text={input === null ? '' : JSON.stringify(input)} />
    </span>
    <span class="text-quiet max-w-[40%] truncate text-xs max-md:hidden" title={visible(note)}>
      {visible(note)}
    </span>
    <State state={state} />
  </li>
)
