import { readFileSync } from 'node:fs'

import type { Action } from '../../src/actions/action.ts'
import type { ActionId, RunId } from '../../src/base/ids.ts'
import type { Run } from '../../src/runs/run.ts'
import { nullable, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { all, single } from '../../src/store/transition.ts'
import type { Store } from '../../src/store/store.ts'
import { processesWith } from '../../test/support/processes.ts'

export type Said = 'approve' | 'deny'

interface Books {
  readonly known: readonly Run[]
  readonly actions: readonly Action[]
  readonly entries: ReadonlyMap<RunId, string>
  /** Of the ledger, which knows nothing of us. */
  readonly lines: readonly string[]
  /** What people said, as far as they heard that it was heard. */
  readonly said: ReadonlyMap<ActionId, Said>
  /** A supervisor was killed: a command may be lost, a plain write in doubt. */
  readonly mayBeUnknown: boolean
}

/** What the independent ledger says against what we say. */
export function accountOf(books: Books): { readonly effects: number; readonly problems: string[] } {
  const { known, actions, entries, lines } = books
  const times = new Map<string, number>()
  for (const line of lines) times.set(line, (times.get(line) ?? 0) + 1)
  const doubled = [...times]
    .filter(([, count]) => count > 1)
    .map(([line, count]) => `${line} was written ${count} times`)
  const effects = [...entries.values(), ...actions.map(({ id }) => id)].filter((line) => times.has(line)).length
  return {
    effects,
    problems: [
      ...doubled,
      ...known.flatMap((run) => wrongEnd(run, books)),
      ...known.flatMap((run) => wrongCommand(run, books, times)),
      ...actions.flatMap((action) => wrongAction(action, times.get(action.id) ?? 0, books)),
    ],
  }
}

function wrongEnd({ id, state, code, error, cancelRequestedAt, request }: Run, { mayBeUnknown }: Books): string[] {
  if (state === 'succeeded' || (state === 'cancelled' && cancelRequestedAt !== null)) return []
  if (state === 'failed' && code === 'lost' && mayBeUnknown && request.kind === 'command') return []
  return [`${id} should have succeeded and is ${state}: ${code} ${error}`]
}

function wrongCommand({ id, state }: Run, { entries }: Books, times: ReadonlyMap<string, number>): string[] {
  const entry = entries.get(id)
  if (entry === undefined || state !== 'succeeded' || times.has(entry)) return []
  return [`${id} succeeded, and ${entry} is not in the ledger`]
}

const askedRow = row({ id: text(), tool: text(), state: text(), approval: nullable(text()) })

const asked = single(() =>
  all(
    askedRow,
    sql`select actions.id, tool, actions.state, approvals.state as approval
      from actions left join approvals on approvals.action_id = actions.id`,
  ),
)

/** Nobody calls these done: a line of theirs was written by somebody who had no right to. */
const UNDONE = new Set(['proposed', 'waiting', 'approved', 'skipped', 'denied', 'expired', 'withdrawn'])

/** Lines that nobody asked for, or nobody allowed; of all that was ever asked for, since a line may come late. */
export async function unallowed(store: Store, entries: ReadonlySet<string>, lines: readonly string[]) {
  const actions = new Map((await store.read(asked)).map((action) => [action.id, action]))
  return lines.flatMap((line) => {
    const action = actions.get(line)
    if (action === undefined) return entries.has(line) ? [] : [`${line} was written, and nobody asked for it`]
    const { tool, state, approval } = action
    const isAllowed = approval === 'consumed' || (tool !== 'careful' && approval === null)
    if (isAllowed && !UNDONE.has(state)) return []
    return [`${line} (${tool}) was written and not allowed: it is ${state}, its approval ${approval}`]
  })
}

/** Where nobody but the daemon died, nothing is left open: the supervisor knows what became of it. */
function wrongAction(action: Action, written: number, { mayBeUnknown, said }: Books): string[] {
  const { id, tool, state, repeatOf } = action
  if (written > 0 && tool === 'careful' && said.get(id) !== 'approve') return [`${id} was written, and nobody said yes`]
  if (tool === 'delegate') return state === 'done' ? [] : [`${id} (delegate) is ${state}`]
  if (state === 'done') return written > 0 || repeatOf !== null ? [] : [`${id} is said to be done and was not written`]
  if (state === 'denied') return said.get(id) === 'deny' && written === 0 ? [] : [`${id} is denied, by nobody`]
  // A probe is asked at once; what has a key is done again by it.
  if (state === 'in_doubt' && mayBeUnknown && tool !== 'probed' && tool !== 'keyed') return []
  if (state === 'failed' && mayBeUnknown && written === 0) return []
  return [`${id} (${tool}) is ${state}, and was written ${written} times`]
}

/** Processes of runs that have ended. */
export function survivorsOf(runs: readonly Run[]): string[] {
  return processesWith('HOLDFAST_RUN=run_').flatMap(({ pid, command }) => {
    const run = runs.find(({ id, endedAt }) => endedAt !== null && isOf(pid, id))
    return run === undefined ? [] : [`${run.id} has ended (${run.state}), and lives on: ${command}`]
  })
}

function isOf(pid: number, run: RunId): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOLDFAST_RUN=${run}`)
  } catch {
    return false
  }
}
