import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

import type { RunId, ThreadId } from '../../base/ids.ts'

const given = <T extends string>(value: string | undefined) =>
  value === undefined || value === '' ? undefined : (value as T)

/** What the environment says, read once; flags win over it. */
export interface Environment {
  readonly home: string
  /** Where the user's configuration is looked for. */
  readonly configFolder: string
  readonly store: string | undefined
  /** A daemon elsewhere, to talk to instead of opening a store here. */
  readonly url: string | undefined
  /** Instead of the one in the home folder. */
  readonly token: string | undefined
  /** The thread that this process runs in, if a run started it. */
  readonly thread: ThreadId | undefined
  /** And that run: it owns what is started from here. */
  readonly run: RunId | undefined
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
    url: given<string>(env.HOLDFAST_URL)?.replace(/\/+$/, ''),
    token: given<string>(env.HOLDFAST_TOKEN),
    thread: given<ThreadId>(env.HOLDFAST_THREAD),
    run: given<RunId>(env.HOLDFAST_RUN),
    // Absolute: what is started from here may run in another folder.
    variables: home === undefined ? variables : { ...variables, HOLDFAST_HOME: resolve(home) },
  }
}
