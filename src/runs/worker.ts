import type { RunId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { literals, now, sql } from '../store/sql.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/** A process that claims runs: the daemon, or a `holdfast run` in the foreground. */
export const WORKER_KINDS = ['daemon', 'command'] as const
export type WorkerKind = (typeof WORKER_KINDS)[number]

/** Enough to tell this very process from any other that later gets its number. */
export interface OwnerIdentity {
  readonly host: string
  readonly boot: string
  readonly pidNamespace: string
  readonly pid: number
  readonly startTime: number
}

const workerRow = row({
  id: text<WorkerId>(),
  kind: oneOf(WORKER_KINDS),
  home: text(),
  identity: json<OwnerIdentity>(),
  startedAt: integer,
  stoppedAt: nullable(integer),
})
export type Worker = Decoded<typeof workerRow>

export interface NewWorker {
  readonly id: WorkerId
  readonly kind: WorkerKind
  readonly home: string
  readonly identity: OwnerIdentity
  readonly agents?: readonly string[]
}

export type Registered =
  | { readonly kind: 'registered'; readonly worker: Worker }
  /** Another daemon has this home folder; the caller judges whether that process is still alive. */
  | { readonly kind: 'occupied'; readonly by: Worker }

/** `dead` is a daemon of the same home that the caller has proven dead; it makes way in the same transaction. */
export function* registerWorker(worker: NewWorker, dead?: WorkerId): Transition<Registered> {
  if (dead !== undefined) yield* stopWorker.single(dead)
  const registered = yield* first(
    workerRow,
    sql`insert into workers (id, kind, home, host, identity, started_at)
      values (${worker.id}, ${worker.kind}, ${worker.home}, ${worker.identity.host}, ${JSON.stringify(worker.identity)}, ${now})
      on conflict do nothing returning *`,
  )
  if (registered !== undefined) {
    yield* seeAgents(worker)
    return { kind: 'registered', worker: registered }
  }
  const known = yield* findWorker.single(worker.id)
  if (known !== undefined) return { kind: 'registered', worker: known }
  const by = (yield* liveDaemons.single(worker.home)).find(({ identity }) => identity.host === worker.identity.host)
  if (by === undefined) throw new Error(`worker ${worker.id} was neither registered nor kept out`)
  return { kind: 'occupied', by }
}

export const stopWorker = single((id: WorkerId) =>
  run(sql`update workers set stopped_at = ${now} where id = ${id} and stopped_at is null`),
)

/** Daemons that did not say that they stopped. `null`: of every home folder. */
export const liveDaemons = single((home: string | null) =>
  all(
    workerRow,
    sql`select * from workers where kind = 'daemon' and stopped_at is null
      and ${home === null ? sql`1 = 1` : sql`home = ${home}`} order by started_at`,
  ),
)

const silentRow = row({
  id: text<WorkerId>(),
  identity: json<OwnerIdentity>(),
  startedAt: integer,
  /** It began so long ago that it is gone wherever it was, and nothing is left of what it did. */
  isUnseen: integer,
})

/** Those that did not say that they stopped, and began long ago, page by page: whoever can see their processes says whether they live. */
export const silentWorkers = single(
  (ageMs: number, after: { readonly startedAt: number; readonly id: string }, limit: number) =>
    all(
      silentRow,
      sql`select w.id, w.identity, w.started_at, case when w.started_at <= ${now} - ${LIMITS.workerUnseenMs}
          and not exists (select 1 from attempts a where a.worker_id = w.id)
          and not exists (select 1 from runs r where r.for_worker = w.id and r.state = 'queued') then 1 else 0 end as is_unseen
        from workers w where w.stopped_at is null and w.started_at <= ${now} - ${ageMs}
          and (w.started_at > ${after.startedAt} or (w.started_at = ${after.startedAt} and w.id > ${after.id}))
        order by w.started_at, w.id limit ${limit}`,
    ),
)

/** Forgets workers that stopped long ago and of which nothing is left. */
export function* forgetWorkers(limit: number, keptMs: number): Transition<number> {
  return yield* run(sql`delete from workers where id in (
    select w.id from workers w where w.stopped_at is not null and w.stopped_at <= ${now} - ${keptMs}
      and not exists (select 1 from attempts a where a.worker_id = w.id)
      and not exists (select 1 from runs r where r.for_worker = w.id and r.state = 'queued')
    order by w.stopped_at limit ${limit})`)
}

/** An agent that no worker has spoken of for this long is taken for unknown: by then nobody comes back with it. */
const AGENT_SEEN_MS = 30 * 86_400_000

/** A daemon has what it says and nothing else any more; a program that is up for a while adds to that. */
function* seeAgents({ kind, home, identity: { host }, agents = [] }: NewWorker): Transition<void> {
  const mine = sql`host = ${host} and home = ${home} and kind = ${kind}`
  if (kind === 'daemon')
    yield* run(
      sql`delete from agents_seen where ${mine} ${agents.length === 0 ? sql`` : sql`and agent not in (${literals(agents)})`}`,
    )
  for (const agent of agents)
    yield* run(sql`insert into agents_seen (agent, host, home, kind, seen_at) values (${agent}, ${host}, ${home}, ${kind}, ${now})
      on conflict (agent, host, home, kind) do update set seen_at = excluded.seen_at`)
}

const agentRow = row({ agent: text() })

/** The agents that somebody has, those too whose worker is down and comes back. */
export const knownAgents = single((only?: string) =>
  all(
    agentRow,
    sql`select distinct s.agent from agents_seen s where ${only === undefined ? sql`1 = 1` : sql`s.agent = ${only}`}
      and (s.seen_at > ${now} - ${AGENT_SEEN_MS}
        or exists (select 1 from workers w where w.host = s.host and w.home = s.home and w.kind = s.kind and w.stopped_at is null)) order by s.agent`,
  ),
)

const findWorker = single((id: WorkerId) => first(workerRow, sql`select * from workers where id = ${id}`))

/** The workers that a run was taken from, and that do not have it now. */
export const lostOwners = single((runId: RunId) =>
  all(
    workerRow,
    sql`select w.* from workers w
      where w.id in (select a.worker_id from attempts a where a.run_id = ${runId} and a.outcome = 'superseded')
        and w.id not in (select a.worker_id from attempts a where a.run_id = ${runId} and a.ended_at is null)`,
  ),
)
