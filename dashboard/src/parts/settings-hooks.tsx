import { useResource } from '../state/resource.ts'
import { Section, Trouble, Waiting } from './page.tsx'
import { Mark } from './small.tsx'

const MARKS = { installed: 'done', drifted: 'failed', 'not-installed': 'queued' } as const
const WORDS = {
  installed: 'installed',
  drifted: 'changed since it was installed',
  'not-installed': 'not installed',
} as const

/** Which command-line agents report to us. */
export function HooksPanel() {
  const { data, problem } = useResource('hooks.status', {})
  const items = data.value?.items
  return (
    <Section title="Hooks">
      <Trouble problem={problem.value} />
      {items === undefined ? (
        problem.value === undefined && <Waiting rows={3} />
      ) : (
        <ul class="panel">
          {items.map(({ client, scope, state, path }) => (
            <li
              key={`${client} ${scope} ${path}`}
              class="row-line flex min-h-10 flex-wrap items-center gap-x-3 px-3 py-1.5 last:border-0"
            >
              <Mark state={MARKS[state]} />
              <span class="w-20 font-semibold">{client}</span>
              <span class="text-quiet">{WORDS[state]}</span>
              <span class="text-quiet min-w-0 flex-1 truncate font-mono text-xs">{path}</span>
              {state !== 'installed' && <code class="font-mono text-xs">holdfast hooks install {client}</code>}
            </li>
          ))}
          {items.length === 0 && <li class="text-quiet px-3 py-3">No client was looked for.</li>}
        </ul>
      )}
    </Section>
  )
}
