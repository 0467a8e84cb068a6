import { foundation } from './0001-foundation.ts'
import { agents } from './0002-agents.ts'
import { quotas } from './0003-quotas.ts'
import { mcpTools } from './0004-mcp-tools.ts'
import { inbox } from './0005-inbox.ts'
import { decisions } from './0006-decisions.ts'
import { schedules } from './0007-schedules.ts'
import { control } from './0008-control.ts'
import { workspaces } from './0009-workspaces.ts'
import { calls } from './0010-calls.ts'
import { agentSessions } from './0011-agent-sessions.ts'
import { retention } from './0012-retention.ts'
import { hotTables } from './0013-hot-tables.ts'
import { workersThatAreGone } from './0014-workers-that-are-gone.ts'
import { browsersOfTokens } from './0015-browsers-of-tokens.ts'
import { missedWakes } from './0016-missed-wakes.ts'
import { oneCheckATable } from './0017-one-check-a-table.ts'
import { eventsByNumber } from './0018-events-by-number.ts'
import { checksByComparison } from './0019-checks-by-comparison.ts'
import { leanCalls } from './0020-lean-calls.ts'
import type { Migration } from './migration.ts'

export const MIGRATIONS: readonly Migration[] = [
  foundation,
  agents,
  quotas,
  mcpTools,
  inbox,
  decisions,
  schedules,
  control,
  workspaces,
  calls,
  agentSessions,
  retention,
  hotTables,
  workersThatAreGone,
  browsersOfTokens,
  missedWakes,
  oneCheckATable,
  eventsByNumber,
  checksByComparison,
  leanCalls,
]
