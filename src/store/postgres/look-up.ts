import type { Pool, PoolClient } from 'pg'

import { sleep } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { LIMITS } from '../../base/limits.ts'
import type { HoldingProbe } from '../store.ts'
import type { Answer } from '../transition.ts'
import { isConnectionLost, sqlState } from './errors.ts'
import type { Request } from './statement.ts'

interface LookUpPorts {
  readonly pool: Pool
  readonly clock: Clock
  readonly opening: readonly Request[]
  readonly probe?: HoldingProbe
}

export interface LostBatch {
  readonly lane: string
  readonly batch: number
  /** What its answer would have said, to be asked for if it was committed. */
  readonly late: readonly Request[]
}

type Found = { readonly kind: 'committed'; readonly late: readonly Answer[] } | { readonly kind: 'missing' }

/**
 * Whether a batch was committed whose connection broke at that moment. The answer is for good: asking for the lane's row
 * waits for a transaction that still holds it, and a batch that is found missing is sealed, so that a commit which is
 * still on its way fails (`ENDING` in batch.ts). Asked again until the database answers, within the bound.
 */
export async function lookUpBatch(ports: LookUpPorts, lost: LostBatch): Promise<Found | { readonly kind: 'unknown' }> {
  const { clock } = ports
  const deadline = clock.monotonicMs() + LIMITS.lockWaitMs
  for (let wait = 20; ; wait = Math.min(wait * 2, 500)) {
    try {
      return await ask(ports, lost)
    } catch (error) {
      const mayRecover = isConnectionLost(error) || sqlState(error) !== undefined
      if (!mayRecover || clock.monotonicMs() > deadline) return { kind: 'unknown' }
      await sleep(clock, wait)
    }
  }
}

async function ask({ pool, opening, probe }: LookUpPorts, { lane, batch, late }: LostBatch): Promise<Found> {
  await probe?.({ at: 'begin', when: 'before' })
  const client = await pool.connect()
  let broken = true
  try {
    for (const request of opening) await client.query(request.text)
    // No row yet, or one that is not committed yet: this waits for it, and otherwise seals the batch itself.
    const seal = await client.query(
      'insert into writers (id, batch, used_at) values ($1, $2, now_ms()) on conflict (id) do nothing',
      [lane, -batch],
    )
    let found = false
    if (seal.rowCount === 0) {
      const { rows } = await client.query<{ batch: string }>('select batch from writers where id = $1 for update', [
        lane,
      ])
      found = Number(rows[0]?.batch) === batch
      if (!found) await client.query('update writers set batch = $2 where id = $1', [lane, -batch])
    }
    const told: Answer[] = []
    if (found) for (const { text, values } of late) told.push(await rowsOf(client, text, values))
    await client.query('commit')
    broken = false
    return found ? { kind: 'committed', late: told } : { kind: 'missing' }
  } finally {
    client.release(broken)
  }
}

async function rowsOf(client: PoolClient, text: string, values: Request['values']): Promise<Answer> {
  const { rows } = await client.query<Record<string, unknown>>(text, [...(values ?? [])])
  return { rows, changes: 0 }
}
