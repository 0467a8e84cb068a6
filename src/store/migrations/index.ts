import { foundation } from './0001-foundation.ts'
import { agents } from './0002-agents.ts'
import type { Migration } from './migration.ts'

export const MIGRATIONS: readonly Migration[] = [foundation, agents]
