import type { ActionId } from '../base/ids.ts'
import { record } from '../events/event.ts'
import { integer, json, nullable, row, text } from '../store/row.ts'
import type { Decoded, Decoder } from '../store/row.ts'
import { now, sql } from '../store/sql.ts'
import { all, first, run, single } from '../store/transition.ts'
import type { Transition } from '../store/transition.ts'
import type { Action } from './action.ts'
import type { PolicyRule } from './policy.ts'
import type { Predicate } from './predicate.ts'

/** "Always" was for exactly the arguments that were shown, also before its rules said so. */
const storedRule: Decoder<PolicyRule> = (cell, column) => {
  const rule = json<PolicyRule>()(cell, column)
  return rule.decision === 'allow' ? { ...rule, only: true } : rule
}

const storedRow = row({
  id: text(),
  rule: storedRule,
  madeBy: text(),
  madeFrom: nullable(text<ActionId>()),
  madeAt: integer,
  removedAt: nullable(integer),
})
/** A rule that a person made by saying "always". */
export type StoredRule = Decoded<typeof storedRow>

export const storedRules = single(() =>
  all(storedRow, sql`select * from policy_rules where removed_at is null order by made_at, id`),
)

const ruleRow = {
  decode: (stored: Readonly<Record<string, unknown>>): PolicyRule => {
    const { id, rule } = storedRow.decode(stored)
    return { ...rule, name: `rule ${id}` }
  },
}

/** As the policy wants them: each with a name by which a decision can say who made it. */
export const rulesInForce = single(() =>
  all(ruleRow, sql`select * from policy_rules where removed_at is null order by made_at, id`),
)

export interface NewRule {
  readonly id: string
  readonly rule: PolicyRule
  readonly by: string
  readonly from?: ActionId
}

/** Survives restarts, as the configuration does. The same id is the same rule. */
export function* addRule({ id, rule, by, from }: NewRule): Transition<void> {
  const added = yield* run(sql`insert into policy_rules (id, rule, made_by, made_from, made_at)
    values (${id}, ${JSON.stringify(rule)}, ${by}, ${from ?? null}, ${now}) on conflict do nothing`)
  if (added === 1) yield* record({ type: 'policy.rule_added', data: { ruleId: id, rule, by } })
}

export function* removeRule(id: string, by: string): Transition<StoredRule | undefined> {
  const removed = yield* first(
    storedRow,
    sql`update policy_rules set removed_at = ${now}, removed_by = ${by} where id = ${id} and removed_at is null returning *`,
  )
  if (removed !== undefined) yield* record({ type: 'policy.rule_removed', data: { ruleId: id, by } })
  return removed
}

/** Tools whose arguments say too little about what happens: they interpret a text, wrap another program, fetch something. */
const OPAQUE = /^(shell|parallel_shell|delegate|manage_jobs|http_get|http_send)$/
const INTERPRETERS = [
  'sh|bash|zsh|dash|fish|ksh|busybox|pwsh|powershell|cmd|node|bun|deno|python[\\d.]*|perl|ruby|php|lua|tclsh|osascript|awk|sed|eval|make',
  'env|xargs|sudo|su|doas|nohup|timeout|time|nice|setsid|stdbuf|chroot|unshare|strace|watch|find|ssh|docker|podman|kubectl',
  'curl|wget|scp|rsync|nc|socat|npx|npm|pnpm|yarn|uvx|pip[\\d.]*',
]
/** A word that is one, or the first word of a command line that begins with one. */
const INTERPRETER = new RegExp(`^\\s*(?:\\S*[/\\\\])?(?:${INTERPRETERS.join('|')})(?:\\.exe)?(?:\\s|$)`)

/** Every text in it, however deep. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

export type Narrowest = { readonly rule: PolicyRule } | { readonly refused: string }

/** The narrowest rule that covers this action: this agent, this tool, exactly these arguments and no others. */
export function narrowestRule(action: Action, agent: string): Narrowest {
  if (OPAQUE.test(action.tool)) {
    return { refused: `${action.tool} does whatever its text says, so no rule describes exactly what it would allow` }
  }
  const { input } = action
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { refused: 'its arguments are not named, so no rule describes them exactly' }
  }
  const interpreter = textsIn(input).find((words) => INTERPRETER.test(words))
  if (interpreter !== undefined) {
    return { refused: `one of its arguments is ${JSON.stringify(interpreter)}, which does whatever the others say` }
  }
  const where: Predicate[] = Object.entries(input).map(([argument, equals]) => ({
    argument,
    equals: equals as unknown,
  }))
  if (where.some(({ argument }) => argument.includes('.'))) {
    return { refused: 'one of its arguments has a dot in its name, so no rule describes it exactly' }
  }
  return { rule: { tool: action.tool, agent, where, only: true, decision: 'allow' } }
}
