import { readFile } from 'node:fs/promises'
import { dirname, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HoldfastError } from '../base/errors.ts'
import { parseConfig, readConfig } from './config.ts'
import type { Config } from './config.ts'
import { beTheOwnPackage } from './own-package.ts'

/** `folder`: what relative paths in it (of scripts, of the commands of tools) start from. */
export type LoadedConfig = Config & { readonly path: string; readonly folder: string }

/** Reads a configuration file. A TypeScript one is executed: only call this for a file that somebody trusts. */
export async function loadConfig(path: string): Promise<LoadedConfig> {
  const full = resolve(path)
  if (!/^\.(json|[cm]?[jt]s)$/.test(extname(full))) {
    throw new HoldfastError('usage/config', `${full} is not named like a configuration`, {
      remedy: 'give a file whose name ends in .json or .ts',
    })
  }
  const config = extname(full) === '.json' ? await fromText(full) : await fromModule(full)
  return { ...config, path: full, folder: dirname(full) }
}

async function fromText(path: string): Promise<Config> {
  return parseConfig(await readFile(path, 'utf8').catch((cause: unknown) => unreadable(path, cause)), path)
}

async function fromModule(path: string): Promise<Config> {
  beTheOwnPackage()
  const module = (await import(pathToFileURL(path).href).catch((cause: unknown) => unreadable(path, cause))) as {
    readonly default?: unknown
  }
  if (module.default === undefined) {
    throw new HoldfastError('usage/config', `${path} has no default export`, {
      remedy: 'write "export default { agents: { … } }"',
    })
  }
  return readConfig(module.default, path)
}

function unreadable(path: string, cause: unknown): never {
  const why = cause instanceof Error ? cause.message : String(cause)
  throw new HoldfastError('usage/config', `${path} cannot be read: ${why}`, {
    remedy: 'check its name, its permissions and what it says',
    cause,
  })
}
