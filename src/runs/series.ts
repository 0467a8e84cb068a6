import { integer, row } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { sql } from '../store/sql.ts'
import { all, single } from '../store/transition.ts'

const bucketRow = row({
  slot: integer,
  succeeded: integer,
  failed: integer,
  cancelled: integer,
  inputTokens: integer,
  outputTokens: integer,
  costMicrousd: integer,
})
export type Bucket = Decoded<typeof bucketRow>

/** Runs that ended in [from, to), by slots of `bucketMs`: slots in which none did are left out. A range of an index. */
export const endedInSlots = single((from: number, to: number, bucketMs: number) =>
  all(
    bucketRow,
    sql`select ended_at / cast(${bucketMs} as bigint) as slot,
        sum(case when state = 'succeeded' then 1 else 0 end) as succeeded,
        sum(case when state = 'failed' then 1 else 0 end) as failed,
        sum(case when state = 'cancelled' then 1 else 0 end) as cancelled,
        sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(cost_microusd) as cost_microusd
      from runs where ended_at is not null and ended_at >= ${from} and ended_at < ${to} group by 1 order by 1`,
  ),
)

const totalRow = row({ inputTokens: integer, outputTokens: integer, costMicrousd: integer })

/** Everything that was ever used. */
export const totalUsage = single(() =>
  all(
    totalRow,
    sql`select coalesce(sum(input_tokens), 0) as input_tokens, coalesce(sum(output_tokens), 0) as output_tokens,
        coalesce(sum(cost_microusd), 0) as cost_microusd from runs`,
  ),
)
