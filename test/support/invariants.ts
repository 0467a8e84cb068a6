import type { Store } from '../../src/store/store.ts'
import { integer, nullable, row, text } from '../../src/store/row.ts'
import type { Row } from '../../src/store/row.ts'
import { raw, sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'
import { all, single } from '../../src/store/transition.ts'
import type { Transition } from '../../src/store/transition.ts'
import { SCHEDULE_VIOLATIONS } from './schedule-invariants.ts'
import { TABLES } from './tables.ts'
import { WORKSPACE_VIOLATIONS } from './workspace-invariants.ts'

/** Up to here the log may have been forgotten, and tells of nothing any more. */
const forgotten = sql`(select coalesce(max(events_until), 0) from retention)`

/** An event `e` of the run `r`, by its id or by its number. */
const OF_RUN = sql`(e.run_id = r.id or e.run_seq = r.seq)`

/**
 * What must be true of every database at every moment between transactions, whatever crashed or raced before
 * (DESIGN.md, section 7). Each is a query that finds the violations.
 */
const VIOLATIONS: Record<string, Sql> = {
  'a run is running exactly when it has one live attempt with its fence': sql`
    select r.id as id, r.state as detail from runs r
    where r.kind <> 'observed' and (r.state = 'running') != (select count(*) = 1 from attempts a where a.run_id = r.id and a.ended_at is null and a.fence = r.fence)`,
  'no attempt outlives its run': sql`
    select a.id as id, r.state as detail from attempts a join runs r on r.id = a.run_id
    where a.ended_at is null and r.state != 'running'`,
  'no attempt and no step is without its run, and no run without its thread': sql`
    select a.id as id, 'attempt' as detail from attempts a where not exists (select 1 from runs r where r.id = a.run_id)
    union all select r.id as id, 'run' as detail from runs r where not exists (select 1 from threads t where t.id = r.thread_id)
    union all select cast(s.run_seq as text) as id, s.name as detail from steps s
    where not exists (select 1 from runs r where r.seq = s.run_seq)`,
  'a terminal run has exactly one run.finished event, with its state; any other has none': sql`
    select r.id as id, r.state as detail from runs r
    where (select count(*) from events e where ${OF_RUN} and e.type = 'run.finished')
        != (case when r.state in ('succeeded', 'failed', 'cancelled') then 1 else 0 end)`,
  'the event of an end names the state that was written': sql`
    select r.id as id, e.data as detail from runs r join events e on ${OF_RUN} and e.type = 'run.finished'
    where e.data not like '%"state":"' || r.state || '"%'`,
  'a run whose cancel was requested ends cancelled or has not ended': sql`
    select id, state as detail from runs where cancel_requested_at is not null and state in ('succeeded', 'failed')`,
  'a cancelled run was asked to be': sql`
    select id, state as detail from runs where state = 'cancelled' and cancel_requested_at is null`,
  'the last attempt of a terminal run that had one ended as the run did': sql`
    select r.id as id, coalesce(a.outcome, 'none') as detail from runs r join attempts a on a.run_id = r.id and a.fence = r.fence
    where r.state in ('succeeded', 'failed', 'cancelled') and a.outcome != r.state and a.outcome not in ('parked', 'requeued')`,
  'slots in use are the slots that live attempts hold': sql`
    select c.scope as id, cast(c.used as text) as detail from capacity c
    where c.used != (select count(*) from attempts a where a.ended_at is null and a.slots like '%"' || c.scope || '"%')`,
  'a parent has one completion for each ended run, and none before': sql`
    select r.id as id, r.state as detail from runs r
    where (select count(*) from messages m where m.key = 'run:' || r.id)
        != (case when r.ended_at is not null and r.parent_thread_id is not null then 1 else 0 end)`,
  'a completion that nobody is to be told is a dead letter, and says why': sql`
    select r.id as id, m.state as detail from runs r join messages m on m.key = 'run:' || r.id
    where r.notify = 0 and (m.state <> 'dead' or m.reason <> 'no-notify')`,
  'a message is leased exactly when it belongs to a delivery that is under way': sql`
    select id, state as detail from messages
    where state = 'leased' and (delivery_id is null or leased_by is null or leased_at is null)
      or state = 'pending' and delivery_id is not null`,
  'of a child that waits for something, at most one such message waits': sql`
    select thread_id as id, from_thread as detail from messages where kind = 'waiting' and state = 'pending'
    group by thread_id, from_thread having count(*) > 1`,
  'a dead letter has a reason, and no other has one but what was replaced': sql`
    select id, state as detail from messages where (state in ('dead', 'replaced')) <> (reason is not null)`,
  'a completion says how the run ended': sql`
    select r.id as id, m.body as detail from runs r join messages m on m.key = 'run:' || r.id
    where m.body not like '%"state":"' || r.state || '"%'`,
  'a thread has at most one run of ours under way': sql`
    select thread_id as id, cast(count(*) as text) as detail from runs
    where state in ('running', 'parked') and kind <> 'observed' and input is null
    group by thread_id having count(*) > 1`,
  'nothing is left open in a run that has ended': sql`
    select a.id as id, a.state as detail from actions a join runs r on r.id = a.run_id
    where r.ended_at is not null and a.state in ('proposed', 'waiting', 'approved')`,
  'a step is told of once when it is settled, and not before': sql`
    select r.id as id, s.name as detail from steps s join runs r on r.seq = s.run_seq
    where s.action_id is null and (select count(*) from events e where ${OF_RUN} and e.type = 'step.recorded'
        and e.data like '%"step":"' || s.name || '"%')
      <> (case when s.state = 'started' then 0 else 1 end)`,
  'a step in doubt is an action in doubt, or one that a person has said something about': sql`
    select r.id as id, s.name as detail from steps s join runs r on r.seq = s.run_seq left join actions a on a.id = s.action_id
    where s.state = 'in_doubt' and (a.id is null or a.state not in ('in_doubt', 'approved', 'withdrawn') or a.tries <> s.tries)`,
  'what a step came to is what the action says that it is': sql`
    select a.id as id, s.state || ' ' || a.state as detail from steps s join actions a on a.id = s.action_id
    where s.state <> 'in_doubt' and s.state <> a.state`,
  'no write of a run that has ended is under way': sql`
    select r.id as id, s.name as detail from steps s join runs r on r.seq = s.run_seq
    where r.ended_at is not null and s.state = 'started'`,
  'no outcome without intent': sql`
    select id, state as detail from actions where state in ('done', 'in_doubt') and started_at is null and repeat_of is null`,
  'an approval is pending exactly when its action waits': sql`
    select a.id as id, coalesce(p.state, 'nobody was asked') as detail from actions a left join approvals p on p.action_id = a.id
    where (a.state = 'waiting') <> coalesce(p.state = 'pending', false)`,
  'an approval is used up exactly when its action has begun': sql`
    select p.id as id, p.state as detail from approvals p join actions a on a.id = p.action_id
    where (p.state = 'consumed') <> (a.tries > 0)`,
  'a no is the end of its action': sql`
    select p.id as id, a.state as detail from approvals p join actions a on a.id = p.action_id
    where p.state in ('skipped', 'denied') and a.state <> p.state`,
  'an approval is bound to the bytes of its action': sql`
    select p.id as id, p.digest as detail from approvals p join actions a on a.id = p.action_id where p.digest <> a.digest`,
  'who decided is known exactly when somebody did': sql`
    select id, state as detail from approvals
    where state in ('approved', 'consumed', 'skipped', 'denied') and (decided_by is null or decided_via is null or decided_at is null)
      or state = 'pending' and decided_by is not null`,
  'a run sleeps for a decision only while one is open': sql`
    select r.id as id, r.parked_for as detail from runs r where r.state = 'parked' and r.parked_for = 'a decision'
      and not exists (select 1 from actions a where (a.run_id = r.id or r.input is null and a.thread_id = r.thread_id)
        and (a.state = 'waiting' or a.state = 'in_doubt' and a.given_up is null))`,
  'where a tool says once, one action with a signature happens in a run': sql`
    select run_id as id, signature as detail from actions
    where repeats = 'once' and effect = 'write' and repeat_of is null and again is null
      and state in ('started', 'done', 'in_doubt')
    group by run_id, signature having count(*) > 1`,
  'what waits for a person was asked for, and what was asked for waits': sql`
    select a.id as id, a.state as detail from actions a left join approvals p on p.action_id = a.id
    where (a.state = 'waiting') <> coalesce(p.state = 'pending', false)`,
  'an approval is used up by the start of its action, and by nothing else': sql`
    select p.id as id, a.state as detail from approvals p join actions a on a.id = p.action_id
    where p.state = 'consumed' and a.started_at is null`,
  'what a person changed was not done, and the other one is of the same call': sql`
    select a.id as id, a.state as detail from actions a left join actions b on b.id = a.replaced_by
    where a.replaced_by is not null and (a.state <> 'skipped' or b.id is null or b.call_id <> a.call_id
      or b.entry_seq <> a.entry_seq or a.started_at is not null)`,
  'a notice is settled exactly when it was sent or given up': sql`
    select id, state as detail from notices where (state = 'pending') <> (settled_at is null)`,
  'a consumed message names the run that took it, and no other does': sql`
    select id, state as detail from messages
    where state = 'consumed' and consumed_by_run is null and delivery_id is null or state <> 'consumed' and consumed_by_run is not null`,
  'a tool of an MCP server is one of a server that was pinned, and an accepted one says by whom': sql`
    select tool as id, server as detail from mcp_tools
    where server not in (select server from mcp_servers) or (digest is null) <> (accepted_by is null)
      or (digest is null) <> (definition is null) or digest = offered_digest`,
  'a token that was ended says by whom, and one that was made is told of once': sql`
    select t.id as id, t.kind as detail from tokens t
    where (t.revoked_at is null) <> (t.revoked_by is null)
      or t.created_at > ${forgotten} and (select count(*) from events e where e.type = 'token.created' and e.data like '%"' || t.id || '"%') <> 1
      or t.created_at > ${forgotten} and (select count(*) from events e where e.type = 'token.revoked' and e.data like '%"' || t.id || '"%')
        <> (case when t.revoked_at is null then 0 else 1 end)`,
  'what somebody did is told of once': sql`
    select a.id as id, a.call as detail from acts a
    where a.at > ${forgotten} and (select count(*) from events e where e.type = 'operator.acted' and e.data like '%"' || a.id || '"%') <> 1`,
  'fences and attempts only grow': sql`
    select a.id as id, cast(a.fence as text) as detail from attempts a join runs r on r.id = a.run_id
    where a.fence > r.fence or a.number > r.attempt`,
  'every event of a run is of one that is there': sql`
    select cast(e.seq as text) as id, e.type as detail from events e
    where e.run_id is not null and not exists (select 1 from runs r where r.id = e.run_id)
      or e.run_seq is not null and not exists (select 1 from runs r where r.seq = e.run_seq)`,
  'what was forgotten lies before what is there': sql`
    select cast(events_through as text) as id, cast(loose_through as text) as detail from retention
    where events_through >= (select coalesce(max(seq), 0) from events) and events_through > 0`,
  'a child that is there has the one that started it': sql`
    select c.id as id, c.parent_run_id as detail from runs c
    where c.parent_run_id is not null and not exists (select 1 from runs p where p.id = c.parent_run_id)`,
  ...SCHEDULE_VIOLATIONS,
  ...WORKSPACE_VIOLATIONS,
}

const violationRow = row({ rule: integer, id: text(), detail: nullable(text()) })

/** One statement for all of them: they are looked at thousands of times. */
const anyViolation: Sql = {
  strings: [
    Object.values(VIOLATIONS)
      .map((query, rule) => `select ${rule} as rule, id, detail from (${query.strings.join('')}) as rule_${rule}`)
      .join(' union all '),
  ],
  values: [],
}
const readViolations = single(() => all(violationRow, anyViolation))

export async function violations(store: Store): Promise<string[]> {
  const rules = Object.keys(VIOLATIONS)
  return (await store.read(readViolations)).map(({ rule, id, detail }) => `${rules[rule]}: ${id} (${detail})`)
}

export async function assertInvariants(store: Store): Promise<void> {
  const found = await violations(store)
  if (found.length > 0) throw new Error(`invariants broken:\n  ${found.join('\n  ')}`)
}

/** The whole visible content of the tables, to compare before with after. */
export async function snapshot(store: Store): Promise<Record<string, unknown[]>> {
  return store.read(readContent)
}

const asIs: Row<Record<string, unknown>> = { decode: (record) => ({ ...record }) }

function* readContent(): Transition<Record<string, unknown[]>> {
  const content: Record<string, unknown[]> = {}
  for (const table of TABLES) content[table] = yield* all(asIs, raw(`select * from ${table} order by 1, 2`))
  return content
}

export type Snapshot = Record<string, unknown[]>

/**
 * Whatever a database numbers by itself depends on what was rolled back before (on PostgreSQL), so a number is replaced
 * by its rank. The order of rows, and with it the order of events, stays.
 */
export async function comparableSnapshot(store: Store): Promise<Snapshot> {
  const content = await snapshot(store)
  return Object.fromEntries(
    Object.entries(content).map(([table, rows]) => [table, rows.map((each, rank) => withSeq(each, rank))]),
  )
}

/** An answer without the numbers that the database gave. */
export function comparable(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(comparable)
  if (typeof answer !== 'object' || answer === null) return answer
  return Object.fromEntries(Object.entries(withSeq(answer, 0)).map(([key, value]) => [key, comparable(value)]))
}

function withSeq(record: unknown, seq: number): object {
  const fields = record as object
  // What refers to such a number is as arbitrary as the number.
  const references = Object.keys(fields).filter((name) => name === 'entry_seq' || name === 'entrySeq')
  // An event of a step names the entry that it recorded.
  const data =
    'data' in fields && typeof fields.data === 'string' ? fields.data.replace(/"entry":\d+/, '"entry":0') : undefined
  return {
    ...fields,
    ...('seq' in fields ? { seq } : {}),
    ...(data === undefined ? {} : { data }),
    ...Object.fromEntries(references.map((name) => [name, 0])),
  }
}
