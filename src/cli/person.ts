import { createInterface } from 'node:readline/promises'

import { insideRun } from '../actions/verdict.ts'
import { thisUser } from '../base/user.ts'
import { judgeProcess } from '../processes/identity.ts'
import { liveDaemons } from '../runs/worker.ts'
import type { Context } from './context.ts'

/** Who decides here, for the record. */
export const decider = () => ({ by: thisUser(), via: 'command line' })

/**
 * What an agent's own process says is nobody's decision. A guard-rail, not a wall: who may open the database can write it
 * (`holdfast doctor` says how to keep users apart).
 */
export function refuseInsideRun({ environment }: Pick<Context, 'environment'>): void {
  const { run } = environment
  if (run === undefined) return
  throw insideRun(`this process was started by ${run}`)
}

export const hasTerminal = () => process.stdin.isTTY && process.stderr.isTTY

/** One line from the terminal; undefined when it is closed. Questions are no results: they go to standard error. */
export async function askLine(question: string): Promise<string | undefined> {
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const closed = new Promise<undefined>((resolve) => reader.once('close', () => resolve(undefined)))
    const line = await Promise.race([reader.question(question), closed])
    return line?.trim().toLowerCase()
  } finally {
    reader.close()
  }
}

/** A run that goes on needs somebody who carries it out. */
export async function noteIfNobodyWorks({ runtime, output }: Context): Promise<void> {
  const daemons = await runtime.store.read(liveDaemons, null)
  if (daemons.every(({ identity }) => judgeProcess(identity) === 'dead'))
    output.note('no daemon is running: `holdfast up` goes on with the run')
}
