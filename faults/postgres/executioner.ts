import type pg from 'pg'

import type { Link, TcpProxy } from '../../test/support/tcp-proxy.ts'
import type { World } from './world.ts'

export const AT_STATEMENT = 'backend terminated at a statement'
export const ANY_MOMENT = 'backend terminated at any moment'

/** A backend that is not gone by then was not ended by us. */
const GONE_MS = 5_000

/** However noisy the machine, somebody asks for something. */
const DEADLINE_MS = 60_000

interface Ended {
  /** What it was at. */
  readonly state: string | null
  readonly isGone: boolean
}

/** Ends backends of one case, by a connection that nobody cuts. */
class Executioner {
  readonly #world: World
  readonly #client: pg.Client

  constructor(world: World, client: pg.Client) {
    this.#world = world
    this.#client = client
  }

  /** Waits until each is gone, so that nobody is counted twice. */
  async end(which: string): Promise<readonly Ended[]> {
    const { rows } = await this.#client.query<Ended>(
      `select state, pg_terminate_backend(pid, ${GONE_MS}) as "isGone" from pg_stat_activity
       where datname = '${this.#world.database}' and application_name not in ('watcher', '') and ${which}`,
    )
    return rows
  }

  /** The backend that the nth request from now on is for. Held: it is gone before the request would reach it. */
  atRequest(proxy: TcpProxy, { nth, isHeld }: { readonly nth: number; readonly isHeld: boolean }): Promise<void> {
    let left = nth
    return new Promise((resolve, reject) => {
      setTimeout(reject, DEADLINE_MS, new Error('nobody asks for anything')).unref()
      proxy.atRequest = (link) => {
        if (--left > 0) return undefined
        proxy.atRequest = () => undefined
        const ended = this.#endOf(link, isHeld)
        ended.then(resolve, reject)
        return isHeld ? ended.catch(() => {}) : undefined
      }
    })
  }

  async #endOf({ pid }: Link, isHeld: boolean): Promise<void> {
    for (const { state, isGone } of await this.end(`pid = ${pid}`))
      if (isGone) this.#world.struck(isHeld || state !== 'idle' ? AT_STATEMENT : ANY_MOMENT)
  }
}

export async function withExecutioner(world: World, work: (executioner: Executioner) => Promise<void>): Promise<void> {
  const client = await world.place.connect(world.database)
  try {
    await work(new Executioner(world, client))
  } finally {
    await client.end()
  }
}
