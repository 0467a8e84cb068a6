import { call } from '../api/client.ts'
import type { WholeRun } from '../api/shapes.ts'
import { visible } from '../look/words.ts'
import { refreshNow } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'
import { Ago } from './small.tsx'

/** Its worker is on a machine that nobody can reach: nobody runs it again, until that is back or a person says that it is dead. */
export function SilentHost({ run }: { readonly run: WholeRun }) {
  if (run.silent === undefined) return null
  const { host, since } = run.silent
  const disown = async () => {
    const done = 'The run has ended as lost. Nothing of it is run again.'
    await attempt('The run was not ended', () => call('runs.disown', { run: run.id }), done)
    refreshNow('runs.show', 'status')
  }
  return (
    <div role="alert" class="border-warn bg-warn-soft mb-6 rounded-md border px-3 py-2" data-silent={host}>
      <p>
        <strong class="text-warn">Nobody hears of it:</strong> its worker on{' '}
        <span class="font-mono">{visible(host)}</span> was last heard <Ago at={since} />. Its command may still be
        running there, so nobody runs it again. It goes on when Holdfast is started on that machine.
      </p>
      {may('operate') && (
        <details class="mt-1">
          <summary class="text-quiet hover:text-ink text-sm">That machine is gone for good …</summary>
          <p class="mt-2 flex flex-wrap items-center gap-3">
            <button type="button" class="button button-bad" data-disown onClick={() => void disown()}>
              It is dead: end the run as lost
            </button>
            <span class="text-quiet text-sm">What its command did stays unknown.</span>
          </p>
        </details>
      )}
    </div>
  )
}
