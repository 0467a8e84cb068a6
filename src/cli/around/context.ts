import type { Command } from 'commander'

import type { Api } from '../../api/client.ts'
import { systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { HoldfastError, describeError } from '../../base/errors.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { leaveNoDumps } from '../../processes/crash-dumps.ts'
import { createRuntime } from '../../runtime.ts'
import type { Runtime } from '../../runtime.ts'
import { beDiscreet } from './discreet.ts'
import { readEnvironment } from './environment.ts'
import type { Environment } from './environment.ts'
import { findConfig } from './find-config.ts'
import { makeOutput } from '../words/output.ts'
import type { Output } from '../words/output.ts'
import { decider } from './person.ts'

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
 * What a configuration is to a command. `needed`: it does what that says. `welcome`: it goes by that where there is one; mistakes in it are
 * noted, and done without. `beside`: it is about something else, and whoever looks at runs or stops one must not have to mend it first;
 * that there is one here which is not used is not worth a word either. `none`: it is not read.
 */
type Configuration = 'needed' | 'welcome' | 'beside' | 'none'

/** What a command works with that only looks and asks: the daemon at HOLDFAST_URL, or the store of this machine. */
export interface Operator {
  readonly environment: Environment
  readonly output: Output
  readonly api: Api
  readonly clock: Clock
  /** Undefined: the daemon is elsewhere. */
  readonly local: Context | undefined
}

/**
 * The same questions and the same answers, wherever they are asked: over HTTP where HOLDFAST_URL names a daemon, else by the
 * very code that a daemon would answer with, on the store itself.
 */
export async function withApi(
  command: Command,
  work: (operator: Operator) => Promise<number>,
  configuration: Configuration = 'beside',
): Promise<number> {
  const flags = command.optsWithGlobals<GlobalFlags>()
  const environment = readEnvironment(flags)
  if (environment.url === undefined) {
    return withRuntime(command, async (context) => work(await operatorHere(context)), configuration)
  }
  const output = makeOutput(flags.json === true)
  await beDiscreet()
  const { remoteApi } = await import('./remote.ts')
  const api = remoteApi(environment.url, environment, output.note)
  return work({ environment, output, api, clock: systemClock, local: undefined })
}

async function operatorHere(context: Context): Promise<Operator> {
  const { runtime, environment, output } = context
  // Loaded here, because a command that only runs another starts faster without it.
  const { localApi } = await import('../../control/handlers.ts')
  const api = localApi({ runtime }, { ...decider(), scopes: ['admin'] })
  return { environment, output, api, clock: runtime.clock, local: context }
}

/** Opens the runtime that the flags and the environment name, lets `work` use it, and closes it. */
export async function withRuntime(
  command: Command,
  work: (context: Context) => Promise<number>,
  configuration: Configuration = 'needed',
): Promise<number> {
  const flags = command.optsWithGlobals<GlobalFlags>()
  const output = makeOutput(flags.json === true)
  const environment = readEnvironment(flags)
  if (environment.url !== undefined && !HERE.has(command.name())) throw onlyHere(command)
  leaveNoDumps()
  const config = await readConfiguration(flags, environment, output, configuration)
  const runtime = await createRuntime({
    home: environment.home,
    warn: output.note,
    agents: configuration === 'needed' ? 'now' : 'when-needed',
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

/** They are about this machine, whatever daemon somebody talks to otherwise. */
const HERE: ReadonlySet<string> = new Set(['up', 'doctor', 'backup', 'prune'])

const onlyHere = (command: Command) =>
  new HoldfastError(
    'usage/only-here',
    `\`${command.name()}\` works on a store of this machine, and HOLDFAST_URL is set`,
    {
      remedy: 'unset HOLDFAST_URL, or run it where the daemon is',
    },
  )

/** One that is named on the command line can be left out there, so it is always needed. */
async function readConfiguration(
  flags: GlobalFlags,
  { configFolder }: Environment,
  { note }: Output,
  configuration: Configuration,
): Promise<LoadedConfig | undefined> {
  if (configuration === 'none') return undefined
  try {
    return await findConfig(flags, configFolder, configuration === 'beside' ? () => {} : note)
  } catch (error) {
    if (configuration === 'needed' || flags.config !== undefined) throw error
    note(`${describeError(error)}\nholdfast: going on without it`)
    return undefined
  }
}
