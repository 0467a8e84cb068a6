import { record } from '../events/event.ts'
import { integer, nullable, row, text } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, run, single } from '../store/transition.ts'
import type { Change, Transition } from '../store/transition.ts'

/** Who asked for what, and through which token. */
export interface Act {
  readonly id: string
  readonly call: string
  readonly on?: string
  readonly by: string
  readonly via: string
  readonly tokenId?: string
}

/** A change and the record of who asked for it, in one transaction: there is none without the other. */
export function* audited(act: Act, change: Change<never, unknown>, args: readonly unknown[]): Transition<unknown> {
  const given = args as never
  const answer = typeof change === 'function' ? yield* change(...given) : yield* change.single(...given)
  const { id, call, on, by, via, tokenId } = act
  const kind = (answer as { readonly kind?: unknown } | null | undefined)?.kind
  const outcome = typeof kind === 'string' ? kind : null
  const written = yield* run(sql`insert into acts (id, at, call, target, by, via, token_id, outcome)
    values (${id}, ${now}, ${call}, ${on ?? null}, ${by}, ${via}, ${tokenId ?? null}, ${outcome}) on conflict do nothing`)
  if (written === 1)
    yield* record({ type: 'operator.acted', data: { ...act, ...(outcome === null ? {} : { outcome }) } })
  return answer
}

const actRow = row({
  id: text(),
  at: integer,
  call: text(),
  target: nullable(text()),
  by: text(),
  via: text(),
  tokenId: nullable(text()),
  outcome: nullable(text()),
})

/** The newest first, as their ids say. */
export const listActs = single((limit: number, after?: string) =>
  all(
    actRow,
    sql`select * from acts where ${after === undefined ? sql`1 = 1` : sql`id < ${after}`}
      order by id desc limit ${limit}`,
  ),
)

/** Forgets what was done long ago: a bounded number at a time. Ids are in the order of time. */
export function* forgetActs(limit: number, keptMs: number): Transition<number> {
  return yield* run(sql`delete from acts where id in (
    select id from (select id, at from acts order by id limit ${limit}) as oldest where at <= ${now} - ${keptMs})`)
}
