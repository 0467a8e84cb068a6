import { HoldfastError } from '../base/errors.ts'
import { cancelRun } from '../runs/cancel.ts'
import { listRuns } from '../runs/run.ts'
import type { Run } from '../runs/run.ts'
import { sessionEnded } from '../sessions/events.ts'
import { sessionsOfThread } from '../sessions/session.ts'
import { removeThread, stopThread } from '../threads/remove.ts'
import type { Removed } from '../threads/remove.ts'
import type { Thread } from '../threads/thread.ts'
import { viewThread } from '../threads/view.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { untilStopped } from './runs.ts'
import { threadOrSelf } from './self.ts'

/** Stopped first, so that nothing new begins while what is under way is ended. */
export async function stop(context: Context, given: string): Promise<number> {
  const { runtime, output } = context
  const found = await threadOrSelf(context, given)
  if (found.state === 'removed') throw alreadyRemoved(found)
  const thread = (await runtime.store.apply(stopThread, found.id)) ?? found
  const { cancelled, observed, stopped } = await cancelAll(context, found)
  output.result({ ...viewThread(thread), cancelled }, () =>
    [`${thread.id} ${thread.state}`, ...cancelled.map((id) => `${id} cancelled`)].join('\n'),
  )
  if (observed > 0) output.note('its client goes on until the end of its turn, and will not be woken after it')
  if (stopped) return EXIT.done
  output.note('its worker has not stopped everything yet; `holdfast doctor` says why')
  return EXIT.failed
}

interface Cancelling {
  readonly cancelled: readonly string[]
  /** Turns of a client, which is not ours to stop. */
  readonly observed: number
  readonly stopped: boolean
}

/** More than one thread can have under way. */
const MOST_RUNS = 1_000

async function cancelAll(context: Context, { id }: Thread): Promise<Cancelling> {
  const { store } = context.runtime
  const states = ['queued', 'running', 'parked'] as const
  const active = await store.read(listRuns, { states, threadId: id, limit: MOST_RUNS })
  const own = active.filter(({ request }) => request.kind !== 'observed')
  const by = `command line (process ${process.pid})`
  const asked: Run[] = []
  for (const run of own) {
    const answer = await store.apply(cancelRun, run.id, { by, reason: `its thread ${id} was stopped` })
    if (answer.kind === 'cancelled' || answer.kind === 'requested') asked.push(answer.run)
  }
  let stopped = true
  for (const run of asked) stopped = (await untilStopped(context, run)).stopped && stopped
  return { cancelled: asked.map((run) => run.id), observed: active.length - own.length, stopped }
}

/** More rounds than this only somebody needs who keeps starting new runs on it. */
const MOST_ROUNDS = 5

export async function remove(context: Context, given: string, flags: { readonly force?: boolean }): Promise<number> {
  const { store } = context.runtime
  const found = await threadOrSelf(context, given)
  let removed = await store.apply(removeThread, found.id)
  for (let round = 0; flags.force === true && removed.kind === 'busy' && round < MOST_ROUNDS; round += 1) {
    await store.apply(stopThread, found.id)
    await cancelAll(context, found)
    for (const { client, sessionId, endedAt } of await store.read(sessionsOfThread, found.id)) {
      if (endedAt === null) await store.apply(sessionEnded, { client, sessionId }, 'its thread was removed')
    }
    removed = await store.apply(removeThread, found.id)
  }
  return report(context, found, removed)
}

function report({ output }: Context, found: Thread, removed: Removed): number {
  if (removed.kind === 'busy') {
    throw new HoldfastError('threads/busy', `${found.id} has ${removed.runs} runs under way`, {
      remedy: 'wait for them, or use --force, which cancels them first',
    })
  }
  if (removed.kind !== 'removed') throw alreadyRemoved(found)
  const { thread, deadLetters } = removed
  output.result(
    { ...viewThread(thread), deadLetters },
    () => `${thread.id} removed${deadLetters === 0 ? '' : `; ${deadLetters} messages are now dead letters`}`,
  )
  return EXIT.done
}

const alreadyRemoved = ({ id }: Thread) =>
  new HoldfastError('threads/already-removed', `${id} has been removed already`, {
    remedy: 'its name may be used for a new thread',
  })
