import type { EndpointName } from '../api/endpoints.ts'
import type { Scope } from '../api/endpoint.ts'
import { HoldfastError } from '../base/errors.ts'
import type { ThreadId } from '../base/ids.ts'
import type { Status } from '../hooks/install/status.ts'
import type { Runtime } from '../runtime.ts'
import type { Change } from '../store/transition.ts'
import { audited } from '../tokens/act.ts'

/** Who asks, as far as it is known. */
export interface Caller {
  /** For the record: a person, or what a token is called. */
  readonly by: string
  /** `command line`, `HTTP`. */
  readonly via: string
  readonly scopes: readonly Scope[]
  readonly tokenId?: string
  /** The only thread that it may see and write for. */
  readonly threadId?: ThreadId
}

/** What this process knows beside its store. */
export interface House {
  readonly runtime: Runtime
  readonly hookStatus?: () => Promise<readonly Status[]>
}

/** One call of one caller: everything it changes is recorded with who did it, in the same transaction. */
export class Desk {
  readonly house: House
  readonly who: Caller
  readonly #call: EndpointName
  readonly #on: string | undefined

  constructor(house: House, who: Caller, call: EndpointName, on?: string) {
    this.house = house
    this.who = who
    this.#call = call
    this.#on = on
  }

  get runtime(): Runtime {
    return this.house.runtime
  }

  read<Args extends readonly unknown[], T>(look: Change<Args, T>, ...args: Args): Promise<T> {
    return this.runtime.store.read(look, ...args)
  }

  apply<Args extends readonly unknown[], T>(change: Change<Args, T>, ...args: Args): Promise<T> {
    const { by, via, tokenId } = this.who
    const act = {
      id: `did_${this.runtime.random.id()}`,
      call: this.#call,
      by,
      via,
      ...(tokenId === undefined ? {} : { tokenId }),
      ...(this.#on === undefined ? {} : { on: this.#on }),
    }
    return this.runtime.store.apply(audited, act, change, args) as Promise<T>
  }

  /**
   * Who decides. A token proves that its holder may, not who that is: a name that the request says is recorded as what its
   * holder says.
   */
  decider(named?: string): { readonly by: string; readonly via: string } {
    const { by, via } = this.who
    return { by: named === undefined ? by : `${named}, as ${by} says`, via }
  }

  /** A caller with a thread of its own gets no other's. */
  ownOnly(threadId: ThreadId): void {
    const { threadId: own } = this.who
    if (own === undefined || own === threadId) return
    throw new HoldfastError('auth/other-thread', `this token is for the thread ${own} alone`, {
      remedy: 'use a token without a thread',
    })
  }
}
