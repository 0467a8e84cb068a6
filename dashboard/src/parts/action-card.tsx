import type { ComponentChildren } from 'preact'

import type { Action, Approval } from '../api/shapes.ts'
import { shownAction } from '../look/states.ts'
import { brief, many, shortId, visible } from '../look/words.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { Arguments } from './arguments.tsx'
import { Bytes } from './bytes.tsx'
import { Decide, useChoosing } from './decide.tsx'
import { Ago, Fact, Id, Lasted, Mark, State } from './small.tsx'

/** One tool call: a line, and behind it everything that is known. What waits for a person is unfolded: nobody should say yes to what is folded away. */
export function ActionCard({ action, open = false }: { readonly action: Action; readonly open?: boolean }) {
  const waits = action.state === 'waiting' || action.state === 'in_doubt'
  return (
    <details
      id={action.id}
      class={`panel action group overflow-hidden ${waits ? 'border-warn' : ''}`}
      open={open || waits}
      data-action={action.id}
      data-state={action.state}
    >
      <summary class="hover:bg-hover flex min-h-9 items-center gap-2 px-3">
        <Mark state={shownAction(action)} />
        <span class="tool shrink-0 font-mono text-sm font-semibold">{visible(action.tool)}</span>
        <span class="text-quiet min-w-0 flex-1 truncate font-mono text-xs">{brief(action.input)}</span>
        <span class="text-quiet shrink-0 text-xs max-md:hidden">
          {action.startedAt !== undefined && <Lasted from={action.startedAt} to={action.settledAt} />}
        </span>
        <State state={shownAction(action)} />
      </summary>
      <div class="border-line grid gap-3 border-t p-3">
        {action.state === 'waiting' && <Waits action={action} />}
        {action.state !== 'waiting' && action.input !== null && <Bytes value={action.input} label="Input" />}
        {action.result !== undefined && (
          <Bytes
            value={action.result}
            label={action.resultBytes === undefined ? 'Output' : 'The beginning of its output'}
          />
        )}
        {action.resultBytes !== undefined && (
          <p>
            The whole, {many(action.resultBytes, 'byte')}, is with{' '}
            <a class="link" href={`/runs/${action.runId}`}>
              its run
            </a>
          </p>
        )}
        {action.error !== undefined && <Bytes value={action.error} label="What was seen" />}
        <Facts action={action} />
        {action.state === 'in_doubt' && (
          <p>
            Nobody knows whether it happened.{' '}
            <a class="link" href={`/doubts/${action.id}`}>
              Settle it
            </a>
          </p>
        )}
      </div>
    </details>
  )
}

function Facts({ action }: { readonly action: Action }) {
  const { decision, settledBy, repeatOf, replacedBy, again } = action
  const facts: readonly (readonly [string, ComponentChildren] | false)[] = [
    ['Effect', action.effect === 'write' ? 'writes' : 'reads only'],
    decision !== undefined && ['Decided', visible(`${decision.kind} by ${decision.by}, via ${decision.via}`)],
    settledBy !== undefined && action.state !== 'in_doubt' && ['Settled by', visible(settledBy)],
    repeatOf !== undefined && ['Answered from', <Id key="of" id={repeatOf} />],
    replacedBy !== undefined && ['Changed into', <Id key="by" id={replacedBy} />],
    again !== undefined && ['May be done again', visible(again)],
    action.startedAt !== undefined && ['Started', <Ago key="at" at={action.startedAt} />],
    action.startedAt !== undefined && ['Took', <Lasted key="took" from={action.startedAt} to={action.settledAt} />],
    [
      'Signature',
      <span key="sig" class="font-mono text-xs" title={action.signature}>
        {action.signature.slice(0, 16)}…
      </span>,
    ],
    [
      'Action',
      <span key="id" title={action.id}>
        <Id id={shortId(action.id)} />
      </span>,
    ],
  ]
  return (
    <dl class="grid grid-cols-2 gap-x-4 gap-y-2 sm:grid-cols-3 lg:grid-cols-4">
      {facts.map(
        (fact) =>
          fact !== false && (
            <Fact key={fact[0]} name={fact[0]}>
              {fact[1]}
            </Fact>
          ),
      )}
    </dl>
  )
}

/** The request for a decision that belongs to it. */
function Waits({ action }: { readonly action: Action }) {
  const asked = useResource('approvals.list', {}, ['approval.'])
  const approval = asked.data.value?.items.find(({ actionId }) => actionId === action.id)
  if (approval === undefined) return <Bytes value={action.input} label="Input" />
  return (
    <>
      <Arguments shown={approval.shown} />
      {may('approve') ? (
        <DecideHere approval={approval} />
      ) : (
        <p class="text-quiet">It waits for somebody who may decide.</p>
      )}
    </>
  )
}

const DecideHere = ({ approval }: { readonly approval: Approval }) => <Decide choosing={useChoosing(approval)} />
