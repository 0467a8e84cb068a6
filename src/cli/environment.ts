import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

import type { ThreadId } from '../base/ids.ts'

/** What the environment says, read once; flags win over it. */
export interface Environment {
  readonly home: string
  /** Where the user's configuration is looked for. */
  readonly configFolder: string
  readonly store: string | undefined
  /** The thread that this process runs in, if a run started it. */
  readonly thread: ThreadId | undefined
  readonly variables: Readonly<Record<string, string>>
}

export interface PlaceFlags {
  readonly home?: string
  readonly store?: string
}

export function readEnvironment(flags: PlaceFlags, env: NodeJS.ProcessEnv = process.env): Environment {
  const home = flags.home ?? env.HOLDFAST_HOME
  const variables = Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
  return {
    home:
      home === undefined ? join(env.XDG_STATE_HOME ?? join(homedir(), '.local', 'state'), 'holdfast') : resolve(home),
    configFolder:
      home === undefined ? join(env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'holdfast') : resolve(home),
    store: flags.store ?? (env.HOLDFAST_STORE === '' ? undefined : env.HOLDFAST_STORE),
    thread:
      env.HOLDFAST_THREAD === undefined || env.HOLDFAST_THREAD === '' ? undefined : (env.HOLDFAST_THREAD as ThreadId),
    variables,
  }
}

/** What a detached command gets of its submitter's environment: enough to find programs and speak a language, no secrets. */
const ALLOWED = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|HOLDFAST_HOME|HOLDFAST_STORE)$/

export function allowedVariables(environment: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(environment.variables).filter(([name]) => ALLOWED.test(name)))
}
