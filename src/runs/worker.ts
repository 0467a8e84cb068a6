import type { RunId, WorkerId } from '../base/ids.ts'
import { integer, json, nullable, oneOf, row, text } from '../store/row.ts'
import type { Decoded } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
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

export const workerRow = row({
  id: text<WorkerId>(),
  kind: oneOf(WORKER_KINDS),
  home: text(),
  identity: json<OwnerIdentity>(),
  /** The agents that it can be, if it said so. */
  agents: nullable(json<readonly string[]>()),
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
    sql`insert into workers (id, kind, home, host, identity, agents, started_at)
      values (${worker.id}, ${worker.kind}, ${worker.home}, ${worker.identity.host}, ${JSON.stringify(worker.identity)}, ${worker.agents === undefined ? null : JSON.stringify(worker.agents)}, ${now})
      on conflict do nothing returning *`,
  )
  if (registered !== undefined) return { kind: 'registered', worker: registered }
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

/**
 * Workers that did not say that they stopped, and of each home folder its last daemon, whatever it said: it comes back with its
 * agents, and a program that is up meanwhile, with other ones, must not take them for unknown.
 */
export const knownWorkers = single(() =>
  all(
    workerRow,
    sql`select * from workers where stopped_at is null
      union all select w.* from
        (select host, home, max(started_at) as started_at from workers where kind = 'daemon' group by host, home) as last
        join workers w on w.host = last.host and w.home = last.home and w.started_at = last.started_at and w.kind = 'daemon'
      where w.stopped_at is not null`,
  ),
)

export const findWorker = single((id: WorkerId) => first(workerRow, sql`select * from workers where id = ${id}`))

/** The workers that a run was taken from. */
export const lostOwners = single((runId: RunId) =>
  all(
    workerRow,
    sql`select w.* from workers w
      where w.id in (select a.worker_id from attempts a where a.run_id = ${runId} and a.outcome = 'superseded')`,
  ),
)
