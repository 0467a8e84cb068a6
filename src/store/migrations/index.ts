import { foundation } from './0001-foundation.ts'
import { agents } from './0002-agents.ts'
import { quotas } from './0003-quotas.ts'
import type { Migration } from './migration.ts'

export const MIGRATIONS: readonly Migration[] = [foundation, agents, quotas]
