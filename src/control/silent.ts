import { iso } from '../base/clock.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { newAttemptId } from '../base/ids.ts'
import type { RunId } from '../base/ids.ts'
import { judgeProcess } from '../processes/identity.ts'
import { disownRun, heldAttempts } from '../runs/recover.ts'
import type { HeldAttempt } from '../runs/recover.ts'
import { viewRun } from '../runs/view.ts'
import type { Desk } from './desk.ts'
import { theRun } from './find.ts'

/** Runs whose worker is on a machine that cannot be reached, and has been silent for longer than its lease. */

const isSilent = ({ identity, leaseOver }: HeldAttempt): boolean =>
  leaseOver === 1 && judgeProcess(identity) === 'unreachable'

/** Those that nobody else may take up: their command may be running. */
export async function silentRuns(desk: Desk) {
  const held = (await desk.read(heldAttempts)).filter((each) => each.startingAt !== null && isSilent(each))
  return held.map(({ runId, agent, identity, leaseUntil }) => ({
    runId,
    agent,
    host: identity.host,
    since: iso(leaseUntil),
  }))
}

export async function silenceOf(desk: Desk, id: RunId) {
  const found = (await silentRuns(desk)).find(({ runId }) => runId === id)
  return found === undefined ? undefined : { host: found.host, since: found.since }
}

/** A person says that the worker is dead: the run ends as lost, and nothing of it is run again. */
export async function disown(desk: Desk, { run: given }: Ask<'runs.disown'>): Promise<Answer<'runs.disown'>> {
  const { runtime } = desk
  const { id } = await theRun(runtime.store, given)
  const held = (await desk.read(heldAttempts)).find(({ runId }) => runId === id)
  if (held === undefined || !isSilent(held)) {
    throw new HoldfastError('runs/not-lost', `${id} is not held by a silent worker on a host that cannot be reached`, {
      remedy: 'a daemon recovers runs of this host by itself; `holdfast runs cancel` stops one that is running',
    })
  }
  const worker = await runtime.registerWorker('command', { concurrency: 1 })
  try {
    const taker = {
      workerId: worker.id,
      leaseMs: runtime.leaseMs,
      attemptId: newAttemptId(runtime.random),
      mark: runtime.random.hex(16),
    }
    const ended = await desk.apply(disownRun, held, taker, desk.who.by)
    if (ended !== undefined) return viewRun(ended.run) as Answer<'runs.disown'>
  } finally {
    await worker.stop()
  }
  throw new HoldfastError('runs/not-lost', `${id} was settled by somebody else meanwhile`, {
    remedy: '`holdfast runs show` says how',
  })
}
