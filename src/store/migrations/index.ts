import { foundation } from './0001-foundation.ts'
import { agents } from './0002-agents.ts'
import { quotas } from './0003-quotas.ts'
import { mcpTools } from './0004-mcp-tools.ts'
import { inbox } from './0005-inbox.ts'
import { decisions } from './0006-decisions.ts'
import { schedules } from './0007-schedules.ts'
import { control } from './0008-control.ts'
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
]
