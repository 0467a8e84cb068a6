import { createInterface } from 'node:readline/promises'

import { insideRun } from '../../actions/verdict.ts'
import { thisUser } from '../../base/user.ts'
import { judgeProcess } from '../../processes/identity.ts'
import { liveDaemons } from '../../runs/worker.ts'
import type { Context, Operator } from './context.ts'

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

/** Without a terminal nobody can say yes. */
export const isConfirmed = async (question: string): Promise<boolean> =>
  hasTerminal() && ['y', 'yes'].includes((await askLine(`${question} [y/N] `)) ?? '')

/** Whether somebody is there who carries runs out. Who answers over HTTP is. */
export const hasDaemon = async ({ local }: Pick<Operator, 'local'>): Promise<boolean> =>
  local === undefined || hasDaemonHere(local)

/** One that was killed did not say that it stopped. */
async function hasDaemonHere({ runtime }: Context): Promise<boolean> {
  const daemons = await runtime.store.read(liveDaemons, null)
  return daemons.some(({ identity }) => judgeProcess(identity) !== 'dead')
}

/** A run that goes on needs somebody who carries it out. */
export async function noteIfNobodyWorks(operator: Operator): Promise<void> {
  if (!(await hasDaemon(operator))) operator.output.note('no daemon is running: `holdfast up` goes on with the run')
}
