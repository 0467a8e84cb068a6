import { formatDuration } from '../base/duration.ts'
import { openedBreakerOf } from '../runs/breaker.ts'
import type { Run } from '../runs/run.ts'
import type { Store } from '../store/store.ts'

/**
 * Says that an agent was stopped, where a person looks. Once: the event belongs to the one run whose end opened the
 * breaker, and only the process that wrote that end asks for it.
 */
export async function tellIfStopped(store: Store, ended: Run, warn: (message: string) => void): Promise<void> {
  if (ended.code !== 'auth') return
  const opened = await store.read(openedBreakerOf, ended.id).catch(() => undefined)
  if (opened === undefined) return
  const { openMs, failures } = opened.data
  const why = `its provider refused the credentials ${failures} times in a row (${ended.error ?? 'auth'})`
  warn(`agent ${ended.agent} is stopped for ${formatDuration(openMs)}: ${why}`)
}
