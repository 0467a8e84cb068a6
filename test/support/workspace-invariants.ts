import { sql } from '../../src/store/sql.ts'
import type { Sql } from '../../src/store/sql.ts'

/** What must be true of the files of runs, as far as the database knows. */
export const WORKSPACE_VIOLATIONS: Record<string, Sql> = {
  'a workspace is open exactly as long as its run': sql`
    select w.run_id as id, w.state as detail from workspaces w join runs r on r.id = w.run_id
    where (w.state in ('opened', 'active', 'prepared', 'checked')) <> (r.ended_at is null)`,
  'only the work of a run that succeeded, and whose check passed, is decided, landed or ready': sql`
    select w.run_id as id, w.state as detail from workspaces w join runs r on r.id = w.run_id
    where w.state in ('decided', 'landed', 'ready') and (r.state <> 'succeeded' or w.passed = 0 or w.sha is null or w.checked_on is null)`,
  'the work of a run that succeeded is discarded by a person alone': sql`
    select w.run_id as id, w.reason as detail from workspaces w join runs r on r.id = w.run_id
    where w.state in ('discarding', 'discarded') and r.state = 'succeeded' and w.reason not like '% by %'`,
  'a run knows of its workspace': sql`
    select w.run_id as id, w.mode as detail from workspaces w join runs r on r.id = w.run_id
    where r.workspace is null or r.workspace <> w.mode or r.host is null or r.host <> w.host`,
  'what is settled holds no lock and has no settler': sql`
    select run_id as id, state as detail from workspaces
    where state in ('landed', 'discarded', 'kept', 'would_land', 'would_discard', 'quarantined')
      and (landing = 1 or settler is not null and wish is null)`,
  'a lock is held on the way to a landing alone': sql`
    select run_id as id, state as detail from workspaces
    where landing = 1 and (state not in ('prepared', 'checked', 'decided', 'ready') or state = 'ready' and wish is null)`,
  'what landed is told of once, and nothing else is told to have landed': sql`
    select w.run_id as id, w.state as detail from workspaces w
    where (select count(*) from events e where e.run_id = w.run_id and e.type = 'workspace.landed')
      <> (case when w.state = 'landed' then 1 else 0 end)`,
  'a shadow changes nothing': sql`
    select run_id as id, state as detail from workspaces
    where (mode = 'shadow') <> (state in ('observing', 'would_land', 'would_discard')) and state not in ('opened', 'active')`,
}
