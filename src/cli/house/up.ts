import { availableParallelism } from 'node:os'

import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { hookTender } from '../../hooks/tend.ts'
import { homePaths } from '../../workers/home.ts'
import { tendRegularly } from '../../workers/tend.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { readEnvironment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { openWindow, windowOptions } from './window.ts'
import type { Window, WindowFlags } from './window.ts'

export function addUp(own: Command, setExit: SetExit): void {
  own.option('--workers <count>', 'how many runs at once', Number, Math.max(4, availableParallelism() * 2))
  windowOptions(own).action(async (flags: UpFlags, given: Command) => {
    setExit(await withRuntime(given, (context) => up(context, flags)))
  })
}

interface UpFlags extends WindowFlags {
  readonly workers: number
}

async function up(context: Context, flags: UpFlags): Promise<number> {
  const { workers } = flags
  if (!Number.isSafeInteger(workers) || workers < 1) {
    throw new HoldfastError('usage/workers', '--workers wants a whole number of 1 or more', {
      remedy: 'as in --workers 4',
    })
  }
  const { runtime, output } = context
  const worker = await runtime.registerWorker('daemon', {
    concurrency: workers,
    replaySpool: hookTender({ ...runtime, warn: output.note }),
  })
  const window = await openWindow(context, flags).catch(async (error: unknown) => {
    await worker.stop()
    throw error
  })
  const signals = twoSignals()
  const stopTending = tendRegularly(runtime, worker)
  try {
    await worker.start()
    output.note(
      `up: ${workers} workers, ${runtime.store.engine} store, home ${runtime.home}; stop with Ctrl-C or SIGTERM`,
    )
    announce(context, window)
    tellWhere(context)
    await signals.first
    output.note('draining: no new runs, those under way get a moment to end')
    await window.close()
    const { handedOver } = await worker.drain(LIMITS.drainMs, signals.second)
    output.note(
      handedOver === 0 ? 'stopped' : `stopped; ${handedOver} commands go on and will be taken up by the next daemon`,
    )
    return EXIT.done
  } finally {
    stopTending()
    signals.ignore()
    await window.close()
  }
}

/** Where commands look without being told, this daemon is found; anywhere else it has to be said. */
function tellWhere({ environment: { home }, output }: Context): void {
  const { HOLDFAST_HOME: _, ...others } = process.env
  if (home !== readEnvironment({}, others).home)
    output.note(`commands in another terminal find it after: export HOLDFAST_HOME=${home}`)
}

/** The code goes to a terminal, where a person can click on it, and not into a log. */
function announce({ runtime, output }: Context, window: Window): void {
  const { url } = window
  if (output.json) output.result({ url, pid: process.pid, home: runtime.home }, () => '')
  if (process.stderr.isTTY) output.note(`window: ${window.signInUrl()}`)
  else
    output.note(
      `window: ${url}/ (sign in with what \`holdfast token code\` prints, or with the token in ${homePaths(runtime.home).token})`,
    )
}

/** The first asks to drain, the second not to wait. A terminal that closes asks once, however often it says so: nobody is there to be in a hurry. */
function twoSignals(): { readonly first: Promise<void>; readonly second: AbortSignal; ignore(): void } {
  const hurry = new AbortController()
  let onFirst = () => {}
  const first = new Promise<void>((resolve) => (onFirst = resolve))
  let count = 0
  const onSignal = (signal: NodeJS.Signals) => {
    count += 1
    if (count === 1) onFirst()
    else if (signal !== 'SIGHUP') hurry.abort()
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  const ignore = () => {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
  return { first, second: hurry.signal, ignore }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
