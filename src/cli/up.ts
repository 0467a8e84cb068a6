import { availableParallelism } from 'node:os'

import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import type { Worker } from '../workers/worker.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import type { SetExit } from './main.ts'

export function addUp(program: Command, setExit: SetExit): void {
  program
    .command('up')
    .description('the daemon, in the foreground: executes queued runs, recovers what was cut off')
    .option('--workers <count>', 'how many runs at once', Number, Math.max(4, availableParallelism() * 2))
    .action(async (flags: { workers: number }, command: Command) => {
      setExit(await withRuntime(command, (context) => up(context, flags.workers)))
    })
}

async function up(context: Context, workers: number): Promise<number> {
  if (!Number.isSafeInteger(workers) || workers < 1) {
    throw new HoldfastError('usage/workers', '--workers wants a whole number of 1 or more', {
      remedy: 'as in --workers 4',
    })
  }
  const { runtime, output } = context
  const worker = await runtime.registerWorker('daemon', { concurrency: workers })
  const signals = twoSignals()
  const stopTending = tendRegularly(context, worker)
  try {
    await worker.start()
    output.note(
      `up: ${workers} workers, ${runtime.store.engine} store, home ${runtime.home}; stop with Ctrl-C or SIGTERM`,
    )
    await signals.first
    output.note('draining: no new runs, those under way get a moment to end')
    const { handedOver } = await worker.drain(LIMITS.drainMs, signals.second)
    output.note(
      handedOver === 0 ? 'stopped' : `stopped; ${handedOver} commands go on and will be taken up by the next daemon`,
    )
    return EXIT.done
  } finally {
    stopTending()
    signals.ignore()
  }
}

/** The first asks to drain, the second not to wait. */
function twoSignals(): { readonly first: Promise<void>; readonly second: AbortSignal; ignore(): void } {
  const hurry = new AbortController()
  let onFirst = () => {}
  const first = new Promise<void>((resolve) => (onFirst = resolve))
  let count = 0
  const onSignal = () => {
    count += 1
    if (count === 1) onFirst()
    else hurry.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal)
  const ignore = () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal)
  }
  return { first, second: hurry.signal, ignore }
}

/** The timer also keeps the process alive while there is nothing to do. */
function tendRegularly({ runtime }: Context, worker: Worker): () => void {
  let cancel = () => {}
  const again = () => {
    cancel = runtime.clock.after(runtime.leaseMs / LIMITS.renewalsPerLease, () => void worker.tend().then(again), {
      ref: true,
    })
  }
  again()
  return () => cancel()
}
