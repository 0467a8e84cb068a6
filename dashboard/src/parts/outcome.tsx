import type { Step, WholeRun } from '../api/shapes.ts'
import { isCall, printed } from '../look/runs.ts'
import type { Ending } from '../look/runs.ts'
import { many, visible } from '../look/words.ts'
import { Bytes } from './bytes.tsx'

/** What it was given, what it waits for, and what came of it. */
export function Outcome({ run }: { readonly run: WholeRun }) {
  const { error, lateResults = [], cancel, input, parkedFor } = run
  const waitsFor = run.state === 'parked' && parkedFor !== undefined ? visible(parkedFor) : undefined
  return (
    <div class="mb-6 grid gap-3 empty:hidden">
      {cancel !== undefined && (
        <p>
          Cancelled by {visible(cancel.by)}
          {cancel.reason === undefined ? '' : visible(`: ${cancel.reason}`)}
        </p>
      )}
      {waitsFor !== undefined && <p class="text-warn wrap-anywhere">It waits for {waitsFor}.</p>}
      {input !== undefined && input !== null && <Bytes value={input} label="What it was called with" />}
      {error !== undefined && (
        <Bytes value={error} label={`Why it ${run.state === 'cancelled' ? 'was cancelled' : 'failed'}`} />
      )}
      <Result run={run} />
      {lateResults.map((late, index) => (
        <Bytes key={index} value={late} label="A result that came too late: kept, not applied" />
      ))}
    </div>
  )
}

/** What an agent said last stands below; a function may return just that. */
function Result({ run }: { readonly run: WholeRun }) {
  const { result, request, steps = [] } = run
  if (result === undefined || result === null) return null
  if (request.kind === 'command') return <Printed ending={result} />
  const last = (steps as readonly Step[]).findLast(({ kind }) => kind === 'assistant')?.text
  return isCall(run) && last !== result ? <Bytes value={result} label="Result" /> : null
}

const STREAMS = [
  ['stdout', 'What it printed'],
  ['stderr', 'What it printed as errors'],
] as const

/** As a terminal would have shown it, and how it ended. */
function Printed({ ending }: { readonly ending: Ending }) {
  const { exitCode, signal, survivorsKilled = 0 } = ending
  const streams = STREAMS.map(([name, label]) => [label, printed(ending[name])] as const)
  const facts = [
    ...(typeof exitCode === 'number' ? [`exit status ${exitCode}`] : []),
    ...(typeof signal === 'string' ? [`ended by ${signal}`] : []),
    ...(survivorsKilled === 0 ? [] : [`${many(survivorsKilled, 'process', 'processes')} that it left behind ended`]),
  ]
  return (
    <>
      {streams.map(([label, text]) => text !== '' && <Bytes key={label} value={text} label={label} />)}
      {streams.every(([, text]) => text === '') && <p class="text-quiet">It printed nothing.</p>}
      {facts.length > 0 && <p class="text-quiet text-sm first-letter:uppercase">{visible(facts.join(' · '))}</p>}
    </>
  )
}
