import { existsSync, readFileSync } from 'node:fs'

import type { Action } from '../../src/actions/action.ts'

export interface Line {
  readonly key: string
  readonly run: string
  readonly entry: string
}

/** What was done, as the world counted it: `KEY RUN ENTRY` a line. */
export function linesOf(ledger: string): Line[] {
  if (!existsSync(ledger)) return []
  const lines = readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const [key = '', run = '', entry = ''] = line.split(' ')
    return { key, run, entry }
  })
}

/** A step that is in doubt is an action whose tool is the step; its key is not the action's. */
export const isOf = ({ id, runId, tool }: Pick<Action, 'id' | 'runId' | 'tool'>, line: Line): boolean =>
  line.key === id || line.key === `${runId}/${tool}`

export const timesOf = (ledger: string, action: Pick<Action, 'id' | 'runId' | 'tool'>): number =>
  linesOf(ledger).filter((line) => isOf(action, line)).length
