import type { RunView } from '../../src/runs/view.ts'
import type { Ended, Place } from './place.ts'

export const isOver = (state: string) => ['succeeded', 'failed', 'cancelled'].includes(state)

/** A run as the command line told of it: from then on it is there, and one that was over stays what it was. */
export function claimRun(place: Place, told: Ended): RunView {
  const run = JSON.parse(told.stdout) as RunView
  const ended = isOver(run.state) ? ` and state = '${run.state}'` : ''
  place.claim(`${run.id} is ${run.state}`, { rows: `select 1 from runs where id = '${run.id}'${ended}` }, wordsOf(told))
  return run
}

/** Its last words: whoever has them has read all of it. */
export const wordsOf = ({ stdout }: Ended) => stdout.trimEnd().slice(-60)
