import type { RunId } from '../../base/ids.ts'
import { sleep } from '../../base/clock.ts'
import { familyOf } from '../../runs/children.ts'
import { isTerminal } from '../../runs/run.ts'
import type { Context, Operator } from './context.ts'
import { progress } from '../words/output.ts'
import { untilEnded } from './wait.ts'

/** Long enough for TERM, grace and KILL, with room for a busy machine. */
const CANCEL_WAIT_MS = 30_000
const LOOK_AGAIN_MS = 200

/** Whether a run that was told to stop has, within a while; with everything that it started where that can be seen. */
export async function untilStopped(operator: Operator, id: string): Promise<boolean> {
  const { local, api, clock } = operator
  if (local !== undefined) return stoppedHere(local, id as RunId)
  const deadline = clock.monotonicMs() + CANCEL_WAIT_MS
  for (;;) {
    const { state } = await api.call('runs.show', { run: id })
    if (isTerminal(state) || clock.monotonicMs() >= deadline) return isTerminal(state)
    await sleep(clock, LOOK_AGAIN_MS)
  }
}

/** Where the worker itself is gone and no daemon is there, this process stops what it left behind. */
async function stoppedHere({ runtime }: Context, id: RunId): Promise<boolean> {
  const open = (await runtime.store.read(familyOf, id)).filter(({ state }) => !isTerminal(state))
  if (open.length === 0) return true
  progress('stopping')
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  try {
    for (const each of open) await worker.recover(each.id)
    const ended = await Promise.all(open.map((each) => untilEnded(runtime, each.id, CANCEL_WAIT_MS)))
    return ended.every((each) => each === undefined || isTerminal(each.state))
  } finally {
    await worker.drain(0)
  }
}
