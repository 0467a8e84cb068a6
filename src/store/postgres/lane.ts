import type { PoolClient, QueryResult } from 'pg'

import type { Randomness } from '../../base/ids.ts'
import type { Answer } from '../transition.ts'
import { isRefusal } from './errors.ts'
import type { Request } from './statement.ts'

export type Answered = Answer & { readonly command: string }

/** One of several requests that were sent together failed; those before it were answered. */
export class RequestFailed extends Error {
  /** Not by a refusal: nobody knows what became of what was sent. */
  readonly lost: boolean
  override readonly cause: unknown

  constructor(cause: unknown, lost: boolean) {
    super(cause instanceof Error ? cause.message : String(cause))
    this.cause = cause
    this.lost = lost
  }
}

/** A connection that writes. It numbers its batches, which is how an unknown commit is looked up later. */
export class Lane {
  readonly id: string
  readonly client: PoolClient
  batch = 0
  /** The pool looks after those that it has, and nobody else after the others. */
  isOver = false

  constructor(client: PoolClient, random: Randomness) {
    this.client = client
    this.id = random.hex(16)
    client.once('end', () => (this.isOver = true))
  }

  /** Sends everything at once, one round trip, and waits for all the answers. */
  async send(requests: readonly Request[]): Promise<Answered[]> {
    const { client } = this
    // One packet for all of them instead of one each.
    const { stream } = (client as unknown as { connection: { stream: { cork(): void; uncork(): void } } }).connection
    stream.cork()
    const sent = requests.map((request) => client.query(request as { text: string; values: unknown[] }))
    stream.uncork()
    const settled = await Promise.allSettled(sent)
    const failed = settled.find((each) => each.status === 'rejected')
    if (failed !== undefined) {
      const lost = settled.some((each) => each.status === 'rejected' && !isRefusal(each.reason))
      throw new RequestFailed(failed.reason, lost)
    }
    return settled.map((each) => answerOf((each as PromiseFulfilledResult<QueryResult>).value))
  }
}

function answerOf(result: QueryResult): Answered {
  const changes = result.command === 'SELECT' ? 0 : (result.rowCount ?? 0)
  return { rows: result.rows as Record<string, unknown>[], changes, command: result.command }
}
