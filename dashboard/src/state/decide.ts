import { signal } from '@preact/signals'

import { call } from '../api/client.ts'
import type { EndpointName } from '../api/client.ts'
import type { Approval, Doubt } from '../api/shapes.ts'
import { onVoid } from './live.ts'
import { refreshNow, thisMoment } from './resource.ts'
import { attempt } from './toast.ts'

export type Decision = 'approve' | 'skip' | 'deny' | 'always'
export type Resolution = 'happened' | 'did-not-happen' | 'run-again' | 'give-up'

/** What was decided on this page, and when: it keeps its place in the list until one leaves, so that nothing jumps. */
export const decided = signal<ReadonlyMap<string, { readonly state: string; readonly at: number }>>(new Map())

onVoid(() => {
  decided.value = new Map()
})

const remember = (id: string, state: string) => {
  decided.value = new Map(decided.value).set(id, { state, at: thisMoment() })
}

/** What was decided here and is not in an answer that was asked for then. A later one knows better: a doubt may be one again. */
export function decidedSince(id: string, asOf: number): string | undefined {
  const found = decided.value.get(id)
  return found !== undefined && found.at > asOf ? found.state : undefined
}

const SHOWN: readonly EndpointName[] = ['threads.show', 'runs.show', 'status']

const WORDS: Readonly<Record<Decision, string>> = {
  approve: 'approved',
  skip: 'skipped',
  deny: 'denied',
  always: 'approved',
}

/** The digest is that of what is on the screen: if it is not what would run any more, the daemon refuses. */
export async function decide(approval: Approval, decision: Decision, note = ''): Promise<boolean> {
  const { id, digest, tool } = approval
  const said = { approval: id, digest, ...(note === '' ? {} : { note }) }
  const well = await attempt(`${tool} was not decided`, () =>
    decision === 'always' ? call('approvals.always', said) : call('approvals.decide', { ...said, decision }),
  )
  if (well) remember(id, WORDS[decision])
  refreshNow('approvals.list', 'approvals.show', ...SHOWN)
  return well
}

/** Changes what a tool is called with. Answers with the id of what asks instead; undefined where it was not done. */
export async function edit(approval: Approval, input: unknown, note = ''): Promise<string | undefined> {
  const { id, digest, tool } = approval
  let asks: string | undefined
  const well = await attempt(
    `${tool} was not changed`,
    async () => {
      const edited = await call('approvals.edit', { approval: id, input, digest, ...(note === '' ? {} : { note }) })
      asks = edited.id
    },
    'Changed. It waits for your yes.',
  )
  if (well) remember(id, 'replaced')
  refreshNow('approvals.list', 'approvals.show', ...SHOWN)
  return asks
}

const SETTLED: Readonly<Record<Resolution, string>> = {
  happened: 'done',
  'did-not-happen': 'failed',
  'run-again': 'approved',
  'give-up': 'left_open',
}

export async function settle(doubt: Doubt, resolution: Resolution, why = ''): Promise<boolean> {
  const said = { doubt: doubt.id, resolution, ...(why === '' ? {} : { why }) }
  const well = await attempt(`${doubt.tool} was not settled`, () => call('doubts.resolve', said))
  if (well) remember(doubt.id, SETTLED[resolution])
  refreshNow('doubts.list', 'doubts.show', ...SHOWN)
  return well
}
