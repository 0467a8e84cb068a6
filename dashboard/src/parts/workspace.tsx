import type { WholeRun } from '../api/shapes.ts'
import { many } from '../look/words.ts'
import { Bytes } from './bytes.tsx'
import { Section } from './page.tsx'
import { State } from './small.tsx'

/** The files that a run changed, where the daemon says anything of them. */
interface Workspace {
  readonly state: string
  readonly base: string
  readonly sha?: string
  readonly branch: string
  readonly changed: readonly string[]
  readonly check?: { readonly exitCode: number; readonly output: string }
  readonly diff?: string
}

export function WorkspacePanel({ run }: { readonly run: WholeRun }) {
  const { workspace } = run as { readonly workspace?: Workspace }
  if (workspace === undefined) return null
  const { state, branch, changed, check, diff } = workspace
  return (
    <Section title="Workspace" side={<State state={state} />}>
      <div class="grid gap-3">
        <p class="text-quiet">
          {many(changed.length, 'file')} changed, for <span class="font-mono">{branch}</span>
        </p>
        {check !== undefined && <Bytes value={check.output} label={`Check: exit ${check.exitCode}`} />}
        <Bytes value={diff ?? changed.join('\n')} label={diff === undefined ? 'Changed' : 'Diff'} />
      </div>
    </Section>
  )
}
