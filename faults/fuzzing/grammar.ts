import { z } from 'zod'

import { ENDPOINTS, ENDPOINT_NAMES } from '../../src/api/endpoints.ts'
import { ROUTES } from '../../src/api/routes.ts'
import type { Dice } from '../simulation/seeded.ts'

/** JSON Schema, as far as the routes use it. */
interface Schema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly minimum?: number
  readonly format?: string
}

/** A route, and what it may be asked. */
export interface Door {
  readonly method: string
  readonly path: string
  readonly ask: Schema
}

export const DOORS: readonly Door[] = ENDPOINT_NAMES.map((name) => ({
  method: ENDPOINTS[name].method,
  path: `/api/v1${ENDPOINTS[name].path}`,
  ask: z.toJSONSchema(ROUTES[name].ask, { io: 'input', unrepresentable: 'any' }) as Schema,
}))

/** A value that fits. `words` are those that name something which is there. */
export function fitting(dice: Dice, schema: Schema, words: readonly string[]): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return dice.pick(schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return fitting(dice, dice.pick(choices), words)
  if (schema.properties !== undefined) return fittingObject(dice, schema, words)
  if (schema.type === 'array') return [fitting(dice, schema.items ?? {}, words)]
  if (schema.type === 'integer' || schema.type === 'number') return Math.max(schema.minimum ?? 1, 1) + dice.below(10)
  if (schema.type === 'boolean') return dice.chance(0.5)
  if (schema.type === 'object') return {}
  return schema.format === 'date-time' ? '2030-01-01T00:00:00Z' : dice.pick(words)
}

function fittingObject(dice: Dice, { properties = {}, required = [] }: Schema, words: readonly string[]): unknown {
  const chosen = Object.entries(properties).filter(([name]) => required.includes(name) || dice.chance(0.4))
  return Object.fromEntries(chosen.map(([name, each]) => [name, fitting(dice, each, words)]))
}
