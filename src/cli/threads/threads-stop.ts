import type { Answer } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { namedThread } from '../around/self.ts'
import { untilStopped } from '../around/stopped.ts'

export async function stop(operator: Operator, given: string): Promise<number> {
  const { api, output } = operator
  const { observed, ...thread } = await api.call('threads.stop', { thread: await namedThread(operator, given) })
  const { id, state, cancelled } = thread
  const stopped = await allStopped(operator, cancelled)
  output.result(thread, () => [`${id} ${state}`, ...cancelled.map((run) => `${run} cancelled`)].join('\n'))
  if (observed > 0) output.note('its client goes on until the end of its turn, and will not be woken after it')
  if (stopped) return EXIT.done
  output.note('its worker has not stopped everything yet; `holdfast doctor` says why')
  return EXIT.failed
}

async function allStopped(operator: Operator, runs: readonly string[]): Promise<boolean> {
  let stopped = true
  for (const run of runs) stopped = (await untilStopped(operator, run)) && stopped
  return stopped
}

export async function resume(operator: Operator, given: string): Promise<number> {
  const { api, output } = operator
  const thread = await api.call('threads.resume', { thread: await namedThread(operator, given) })
  output.result(thread, () => `${thread.id} ${thread.state}`)
  return EXIT.done
}

/** More rounds than this only somebody needs who keeps starting new runs on it. */
const MOST_ROUNDS = 5

export async function remove(operator: Operator, given: string, flags: { readonly force?: boolean }): Promise<number> {
  const thread = await namedThread(operator, given)
  const removed =
    flags.force === true ? await removeByForce(operator, thread) : await removeNow(operator, thread, false)
  if (removed instanceof HoldfastError) throw removed
  const { id, deadLetters } = removed
  operator.output.result(
    removed,
    () => `${id} removed${deadLetters === 0 ? '' : `; ${deadLetters} messages are now dead letters`}`,
  )
  return EXIT.done
}

type Removed = Answer<'threads.remove'> | HoldfastError

/** That something is under way is an answer; everything else is not. */
async function removeNow({ api }: Operator, thread: string, force: boolean): Promise<Removed> {
  try {
    return await api.call('threads.remove', { thread, force })
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'threads/busy') return error
    throw error
  }
}

async function removeByForce(operator: Operator, thread: string): Promise<Removed> {
  let removed = await removeNow(operator, thread, true)
  for (let round = 0; removed instanceof HoldfastError && round < MOST_ROUNDS; round += 1) {
    const { items } = await operator.api.call('runs.list', { thread, state: ['queued', 'running', 'parked'] })
    await allStopped(
      operator,
      items.filter(({ request }) => request.kind !== 'observed').map(({ id }) => id),
    )
    removed = await removeNow(operator, thread, true)
  }
  return removed
}
