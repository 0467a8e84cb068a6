import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { parseDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import type { CapacityLimits } from '../runs/capacity.ts'

/** The settings of `holdfast.config.json`. */
export interface Config {
  readonly leaseMs?: number
  readonly capacity?: CapacityLimits
  readonly backlog?: number
}

export const CONFIG_NAME = 'holdfast.config.json'

/** The file named by `--config`, or the one in the user's folder, or none. */
export function readConfig(named: string | undefined, folder: string): Config {
  const path = named ?? join(folder, CONFIG_NAME)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if (named === undefined && (cause as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new HoldfastError('usage/config', `${path} cannot be read`, {
      remedy: 'check the name and its permissions',
      cause,
    })
  }
  return parseConfig(text, path)
}

export function parseConfig(text: string, path: string): Config {
  const root = record(parseJson(text, path), path, '')
  allowKeys(root, ['lease', 'capacity'], path, '')
  const capacity = root.capacity === undefined ? {} : record(root.capacity, path, 'capacity')
  allowKeys(capacity, ['total', 'eachAgent', 'perAgent', 'backlog'], path, 'capacity')
  const perAgent = capacity.perAgent === undefined ? {} : record(capacity.perAgent, path, 'capacity.perAgent')
  const slots = (value: unknown, at: string) => count(value, path, at)
  return {
    ...(root.lease === undefined ? {} : { leaseMs: duration(root.lease, path, 'lease') }),
    ...(capacity.backlog === undefined ? {} : { backlog: slots(capacity.backlog, 'capacity.backlog') }),
    capacity: {
      ...(capacity.total === undefined ? {} : { total: slots(capacity.total, 'capacity.total') }),
      ...(capacity.eachAgent === undefined ? {} : { eachAgent: slots(capacity.eachAgent, 'capacity.eachAgent') }),
      perAgent: Object.fromEntries(
        Object.entries(perAgent).map(([agent, value]) => [agent, slots(value, `capacity.perAgent.${agent}`)]),
      ),
    },
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw wrong(path, '', `is not JSON (${(cause as Error).message})`)
  }
}

function record(value: unknown, path: string, at: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw wrong(path, at, 'must be an object')
}

function count(value: unknown, path: string, at: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw wrong(path, at, 'must be a whole number, 0 or more')
}

function duration(value: unknown, path: string, at: string): number {
  if (typeof value !== 'string') throw wrong(path, at, 'must be a duration in quotes, as "15s"')
  return parseDuration(value)
}

function allowKeys(value: Record<string, unknown>, known: readonly string[], path: string, at: string): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key))
  if (unknown !== undefined) {
    throw wrong(path, at === '' ? unknown : `${at}.${unknown}`, `is not a setting; known here: ${known.join(', ')}`)
  }
}

function wrong(path: string, at: string, what: string): HoldfastError {
  return new HoldfastError('usage/config', `${path}: ${at === '' ? 'it' : `"${at}"`} ${what}`, {
    remedy: 'mend the file and try again',
  })
}
