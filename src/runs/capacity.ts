import { sql } from '../store/sql.ts'
import { integer, row, text } from '../store/row.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'

/** How many attempts may run at once. Absent means no limit, and then nothing is counted. */
export interface CapacityLimits {
  readonly total?: number
  readonly perAgent?: Readonly<Record<string, number>>
  /** For agents that `perAgent` does not name. */
  readonly eachAgent?: number
}

const TOTAL = 'total'
const agentScope = (agent: string) => `agent:${agent}`

const agentLimit = (limits: CapacityLimits, agent: string) => limits.perAgent?.[agent] ?? limits.eachAgent

/** Whether anything is counted for its runs. */
export const isLimited = (limits: CapacityLimits | undefined, agent: string): boolean =>
  limits !== undefined && (limits.total !== undefined || agentLimit(limits, agent) !== undefined)

const usedRow = row({ used: integer })
const scopeRow = row({ scope: text(), used: integer })

/**
 * Takes a slot in every scope that has a limit, or none. The verdict is each update's own, so two workers that race
 * for the last slot cannot both get it.
 */
export function* takeSlots(agent: string, limits: CapacityLimits): Transition<string[] | undefined> {
  const wanted = [
    { scope: agentScope(agent), limit: agentLimit(limits, agent) },
    { scope: TOTAL, limit: limits.total },
  ]
  const taken: string[] = []
  for (const { scope, limit } of wanted) {
    if (limit === undefined) continue
    if (!(yield* takeSlot(scope, limit))) {
      yield* releaseSlots(taken)
      return undefined
    }
    taken.push(scope)
  }
  return taken
}

function* takeSlot(scope: string, limit: number): Transition<boolean> {
  if (limit < 1) return false
  const slot = yield* first(
    usedRow,
    sql`insert into capacity (scope, used) values (${scope}, 1)
      on conflict (scope) do update set used = capacity.used + 1 where capacity.used < ${limit} returning used`,
  )
  return slot !== undefined
}

export function* releaseSlots(scopes: readonly string[]): Transition<void> {
  for (const scope of scopes) yield* run(sql`update capacity set used = used - 1 where scope = ${scope}`)
}

/** Agents that have no slot left, so that a claim need not look at their runs. */
export function* fullAgents(limits: CapacityLimits): Transition<{ total: boolean; agents: string[] }> {
  if (limits.total === undefined && limits.perAgent === undefined && limits.eachAgent === undefined) {
    return { total: false, agents: [] }
  }
  const scopes = yield* usedSlots.single()
  const total = limits.total !== undefined && scopes.some(({ scope, used }) => scope === TOTAL && used >= limits.total!)
  const agents = scopes
    .filter(({ scope }) => scope !== TOTAL)
    .map(({ scope, used }) => ({ agent: scope.slice(agentScope('').length), used }))
    .filter(({ agent, used }) => used >= (agentLimit(limits, agent) ?? Number.POSITIVE_INFINITY))
    .map(({ agent }) => agent)
  return { total, agents }
}

export const usedSlots = single(() => all(scopeRow, sql`select scope, used from capacity where used > 0`))
