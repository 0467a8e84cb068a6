import { resolve } from 'node:path'

import type { Clock } from '../base/clock.ts'
import { HoldfastError } from '../base/errors.ts'
import type { Randomness } from '../base/ids.ts'
import type { TextCodec } from './codec.ts'
import { openSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'

export interface StoreOptions {
  readonly clock: Clock
  readonly random: Randomness
  /** Keeps secrets out of what is stored. */
  readonly codec?: TextCodec
}

/**
 * Opens what HOLDFAST_STORE names. SQLite, which is the usual one, is at hand: to look for its file would take longer than
 * to read it. Its library and the other engine are loaded only when they are asked for.
 */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  const path = /^sqlite:(.+)$/.exec(url)?.[1]
  if (path !== undefined) {
    return openSqliteStore({ path: path === ':memory:' ? path : resolve(path), ...options })
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgresStore } = await import('./postgres/store.ts')
    return openPostgresStore({ url, ...options })
  }
  throw new HoldfastError('usage/store-url', `"${withoutPassword(url)}" is not a store that this Holdfast knows`, {
    remedy: 'write sqlite:PATH or postgres://USER@HOST/DATABASE',
  })
}

/** For messages: a password in a URL must not end up in a log. */
function withoutPassword(url: string): string {
  return url.replace(/(\/\/[^/:@]*):[^@/]*@/, '$1:***@')
}
