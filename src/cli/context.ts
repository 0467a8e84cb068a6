import type { Command } from 'commander'

import { describeError } from '../base/errors.ts'
import type { LoadedConfig } from '../config/load.ts'
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

/**
 * `welcome`: a configuration with mistakes is noted and done without. Whoever looks at runs or stops one must not have to
 * mend it first.
 */
type Configuration = 'needed' | 'welcome'

/** Opens the runtime that the flags and the environment name, lets `work` use it, and closes it. */
export async function withRuntime(
  command: Command,
  work: (context: Context) => Promise<number>,
  configuration: Configuration = 'needed',
): Promise<number> {
  const flags = command.optsWithGlobals<GlobalFlags>()
  const output = makeOutput(flags.json === true)
  const environment = readEnvironment(flags)
  const config = await readConfiguration(flags, environment, output, configuration)
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

/** One that is named on the command line can be left out there, so it is always needed. */
async function readConfiguration(
  flags: GlobalFlags,
  { configFolder }: Environment,
  { note }: Output,
  configuration: Configuration,
): Promise<LoadedConfig | undefined> {
  try {
    return await findConfig(flags, configFolder, note)
  } catch (error) {
    if (configuration === 'needed' || flags.config !== undefined) throw error
    note(`${describeError(error)}\nholdfast: going on without it`)
    return undefined
  }
}
