import { z } from 'zod'

import { LIMITS } from '../../base/limits.ts'

/** An instant as ISO 8601. */
export const instant = z.string().meta({ format: 'date-time' })

/** Names that people choose. */
export const name = z.string().min(1).max(LIMITS.nameLength)

/** How many in a page. */
export const limit = z.coerce.number<number>().int().min(1).max(LIMITS.longestPage).optional()

/** `next` of the page before: the id of its last one. */
export const after = z.string().min(1).max(LIMITS.nameLength).optional()

/** A sequence number of the event log. */
export const seq = z.coerce.number<number>().int().min(0).max(Number.MAX_SAFE_INTEGER)

/** `next` is what to give as `after` for the page that follows; without it this is the last. */
export const page = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next: z.string().optional() })

export const usage = z.object({ inputTokens: z.number(), outputTokens: z.number(), costUsd: z.number() })

/** Whatever a tool, a model or a person put there. */
export const anything = z.unknown()
