import { existsSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'

/** `.ts` where the sources run as they are, `.js` in the build. */
const EXTENSION = extname(import.meta.filename)

/** A clone runs its sources, an installed package its build. */
export const isClone = EXTENSION === '.ts'

/** The folder of this package. Looked for, because a build puts what belongs together into one file, wherever it came from. */
export const PACKAGE_FOLDER = findPackage(import.meta.dirname)

function findPackage(folder: string): string {
  const parent = dirname(folder)
  return existsSync(join(folder, 'package.json')) || parent === folder ? folder : findPackage(parent)
}

/** A file beside the modules: `base/place.ts` is in `src` or in `dist`. */
export const besideModules = (name: string): string => join(PACKAGE_FOLDER, isClone ? 'src' : 'dist', name)

/** A module that is started or loaded by its name; it must be an entry in tsdown.config.ts. */
export const modulePath = (name: string): string => besideModules(`${name}${EXTENSION}`)
