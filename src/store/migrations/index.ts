import { foundation } from './0001-foundation.ts'
import type { Migration } from './migration.ts'

export const MIGRATIONS: readonly Migration[] = [foundation]
