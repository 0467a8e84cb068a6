import { HoldfastError, describeError } from '../base/errors.ts'
import { newWorkerId } from '../base/ids.ts'
import { judgeProcess, processIdentity } from '../processes/identity.ts'
import { rememberBoot } from '../processes/remember-boot.ts'
import { registerWorker } from '../runs/worker.ts'
import type { NewWorker } from '../runs/worker.ts'
import { homePaths } from './home.ts'
import { Worker } from './worker.ts'
import type { WorkerOptions } from './worker.ts'

/** Registers this process as a worker. A second daemon of the same home folder is refused while the first lives. */
export async function registerThisProcess(options: WorkerOptions): Promise<Worker> {
  const { store, random, kind, home, warn } = options
  await rememberBoot(homePaths(home).boots).catch((error: unknown) => warn(describeError(error)))
  const identity = processIdentity()
  if (identity === undefined)
    throw new HoldfastError('processes/no-identity', 'this process cannot be identified', {
      remedy: 'check that /proc is mounted and that the process has file handles left (ulimit -n)',
    })
  const agents = [...(options.agents?.keys() ?? [])]
  const worker: NewWorker = { id: newWorkerId(random), kind, home, identity, agents }
  let registered = await store.apply(registerWorker, worker)
  if (registered.kind === 'occupied' && judgeProcess(registered.by.identity) === 'dead') {
    registered = await store.apply(registerWorker, worker, registered.by.id)
  }
  if (registered.kind === 'occupied') {
    throw new HoldfastError(
      'daemon/already-running',
      `a daemon with process number ${registered.by.identity.pid} serves ${home}`,
      {
        remedy: 'stop it first, or give this one a home folder of its own (HOLDFAST_HOME)',
      },
    )
  }
  const made = new Worker(worker.id, options)
  if (options.wakes !== undefined || options.notifies !== undefined) await made.watch()
  return made
}
