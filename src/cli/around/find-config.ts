import { existsSync } from 'node:fs'
import { join } from 'node:path'

import type { LoadedConfig } from '../../config/load.ts'

export const CONFIG_NAMES = ['holdfast.config.ts', 'holdfast.config.json'] as const

export interface ConfigFlags {
  readonly config?: string
  readonly trust?: boolean
}

/**
 * The file named by `--config`, else the one in the user's folder. One that is merely found in the working folder could
 * be anybody's, a cloned repository's for instance, and it names commands: it is used only if a person says so.
 */
export async function findConfig(
  flags: ConfigFlags,
  userFolder: string,
  note: (text: string) => void,
): Promise<LoadedConfig | undefined> {
  if (flags.config !== undefined) return load(flags.config)
  const users = inFolder(userFolder)
  if (users !== undefined) return load(users)
  const found = inFolder('.')
  if (found === undefined) return undefined
  if (flags.trust === true) return load(found)
  note(`${found} in this folder is not used; --trust uses it, --config names another`)
  return undefined
}

const inFolder = (folder: string) => CONFIG_NAMES.map((name) => join(folder, name)).find((path) => existsSync(path))

/** Most commands are called without any, and then need not know how one is read. */
const load = async (path: string) => (await import('../../config/load.ts')).loadConfig(path)
