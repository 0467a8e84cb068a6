import type { Command } from 'commander'

import { createRuntime } from '../runtime.ts'
import type { Runtime } from '../runtime.ts'
import { readEnvironment } from './environment.ts'
import type { Environment } from './environment.ts'
import { findConfig } from './find-config.ts'
import { makeOutput } from './output.ts'
import type { Output } from './output.ts'

/** What every command works with. */
export interface Context {
  readonly environment: Environment
  readonly runtime: Runtime
  readonly output: Output
}

interface GlobalFlags {
  readonly home?: string
  readonly store?: string
  readonly config?: string
  readonly trust?: boolean
  readonly json?: boolean
  readonly acceptRestore?: boolean
}

/** Opens the runtime that the flags and the environment name, lets `work` use it, and closes it. */
export async function withRuntime(command: Command, work: (context: Context) => Promise<number>): Promise<number> {
  const flags = command.optsWithGlobals<GlobalFlags>()
  const output = makeOutput(flags.json === true)
  const environment = readEnvironment(flags)
  const config = await findConfig(flags, environment.configFolder, output.note)
  const runtime = await createRuntime({
    home: environment.home,
    warn: output.note,
    acceptRestore: flags.acceptRestore === true,
    ...(environment.store === undefined ? {} : { store: environment.store }),
    ...(config === undefined ? {} : { config }),
    environment: environment.variables,
  })
  try {
    return await work({ environment, runtime, output })
  } finally {
    await runtime.close()
  }
}
