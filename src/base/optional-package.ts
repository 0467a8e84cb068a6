import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

export type Loaded = Readonly<Record<string, unknown>>

/** A package that need not be there: beside `folder`, for a Holdfast that is installed elsewhere, or beside Holdfast. */
export const loadOptional = async (name: string, folder: string): Promise<Loaded | undefined> =>
  (await loadFrom(folder, name)) ?? (await loadHere(name))

const loadHere = (name: string): Promise<Loaded | undefined> =>
  import(name).catch(absent) as Promise<Loaded | undefined>

async function loadFrom(folder: string, name: string): Promise<Loaded | undefined> {
  try {
    const path = createRequire(join(resolve(folder), 'package.json')).resolve(name)
    return (await import(pathToFileURL(path).href)) as Loaded
  } catch (error) {
    return absent(error)
  }
}

function absent(error: unknown): undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return undefined
  throw error
}
