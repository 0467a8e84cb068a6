import { readFileSync } from 'node:fs'

import type { Action } from '../../src/actions/action.ts'
import type { RunId } from '../../src/base/ids.ts'
import type { Run } from '../../src/runs/run.ts'
import { processesWith } from '../../test/support/processes.ts'

interface Books {
  readonly known: readonly Run[]
  readonly actions: readonly Action[]
  readonly entries: ReadonlyMap<RunId, string>
  /** Of the ledger, which knows nothing of us. */
  readonly lines: readonly string[]
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

/** Where nobody but the daemon died, nothing is left open: the supervisor knows what became of it. */
function wrongAction({ id, tool, state, repeatOf }: Action, written: number, { mayBeUnknown }: Books): string[] {
  if (tool === 'delegate') return state === 'done' ? [] : [`${id} (delegate) is ${state}`]
  if (state === 'done') return written > 0 || repeatOf !== null ? [] : [`${id} is said to be done and was not written`]
  // A probe can be asked at once; a key is used by whoever takes over.
  if (state === 'in_doubt' && mayBeUnknown && tool !== 'probed') return []
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
