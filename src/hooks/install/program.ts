import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { HoldfastError } from '../../base/errors.ts'
import { PACKAGE_FOLDER } from '../../base/place.ts'

/** A clone brings its own Node, under a name that stays when it is renewed. */
const BUNDLED = ['node_modules/.bin/node', 'toolchain/node_modules/.bin/node']

/** What a client is to start. */
export function hookProgram(root = PACKAGE_FOLDER): { readonly node: string; readonly script: string } {
  const bundled = BUNDLED.map((name) => join(root, name)).find((path) => existsSync(path))
  const clone = existsSync(join(root, 'src'))
  return { node: clone && bundled !== undefined ? bundled : process.execPath, script: join(root, 'bin', 'hook.cjs') }
}

const SQLITE = /^sqlite:(.+)$/

/** A password has no place in a settings file, wherever in the URL it stands. */
export const hasPassword = (store: string): boolean =>
  /^[a-z]+:\/\/[^/?#]*:[^/?#]*@/i.test(store) || /[?&](?:ssl)?password=/i.test(store)

/** The store as it may be written down: absolute, and without secrets. */
export function storeToWrite(store: string): string {
  if (hasPassword(store)) {
    throw new HoldfastError(
      'usage/hooks-store',
      'the address of the store has a password, which must not be written into settings',
      {
        remedy:
          'leave it out of the address and put it into ~/.pgpass, or add --store-from-env: then the hooks read HOLDFAST_STORE where they are started',
      },
    )
  }
  const path = SQLITE.exec(store)?.[1]
  return path === undefined ? store : `sqlite:${resolve(path)}`
}
