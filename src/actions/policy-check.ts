import { isDeepStrictEqual } from 'node:util'

import type { PolicyRule } from './policy.ts'
import { argumentNames, holds, readingOf } from './predicate.ts'
import type { Predicate, Reading } from './predicate.ts'

/** One thing about a set of rules that their author should look at. */
export interface RuleProblem {
  readonly kind: 'shadowed' | 'contradiction' | 'repeated'
  /** The rule that has no effect, and the one that is in its way; by their places in the list. */
  readonly rule: number
  readonly by: number
}

/** Rules that can never decide anything, each with one that always comes before it. */
export function ruleProblems(rules: readonly PolicyRule[]): RuleProblem[] {
  return rules.flatMap((rule, index) => {
    const by = rules.findIndex((other, place) => place !== index && prevails(other, place, rule, index))
    const stronger = rules[by]
    return stronger === undefined ? [] : [{ kind: kindOf(stronger, rule), rule: index, by }]
  })
}

/** As the first one reads its conditions. */
function isSame(a: PolicyRule, b: PolicyRule): boolean {
  const other = { ...b, decision: a.decision }
  return covers(a, other) && covers(other, a)
}

function kindOf(stronger: PolicyRule, rule: PolicyRule): RuleProblem['kind'] {
  if (stronger.decision === rule.decision) return 'repeated'
  return isSame(stronger, rule) ? 'contradiction' : 'shadowed'
}

const STRENGTH = { deny: 2, ask: 1, allow: 0 } as const

/** Whatever `rule` matches, `other` matches and wins: a deny always, another only if it says as much about the call. */
function prevails(other: PolicyRule, place: number, rule: PolicyRule, index: number): boolean {
  if (!covers(other, rule)) return false
  const same = isSame(other, rule)
  if (other.decision === 'deny' && (rule.decision !== 'deny' || !same)) return true
  if (!same) return false
  return STRENGTH[other.decision] > STRENGTH[rule.decision] || (other.decision === rule.decision && place < index)
}

/** Everything that the second matches, the first does too. */
export const covers = (wide: PolicyRule, narrow: PolicyRule): boolean =>
  coversTool(wide.tool, narrow.tool) &&
  (wide.effect === undefined || wide.effect === narrow.effect) &&
  (wide.agent === undefined || wide.agent === narrow.agent) &&
  (wide.thread === undefined || wide.thread === narrow.thread) &&
  (wide.where ?? []).every((condition) => isImplied(condition, wide, narrow)) &&
  (wide.only !== true || coversOnly(wide, narrow))

function coversOnly(wide: PolicyRule, narrow: PolicyRule): boolean {
  const names = argumentNames(wide.where ?? [])
  return narrow.only === true && [...argumentNames(narrow.where ?? [])].every((name) => names.has(name))
}

function coversTool(wide: string | undefined, narrow: string | undefined): boolean {
  if (wide === undefined || wide === narrow) return true
  return narrow !== undefined && wide.endsWith('*') && narrow.startsWith(wide.slice(0, -1))
}

/** What an allow says to the letter is less than what a deny or an ask means by the same words. */
function isImplied(condition: Predicate, wide: PolicyRule, narrow: PolicyRule): boolean {
  const reading = readingOf(wide.decision)
  if (reading === 'narrow' && readingOf(narrow.decision) === 'wide') return false
  return (narrow.where ?? []).some((other) => implies(other, condition, reading))
}

/** Where the first holds, the second does. */
function implies(given: Predicate, wanted: Predicate, reading: Reading): boolean {
  if (given.argument !== wanted.argument) return false
  if (isDeepStrictEqual(given, wanted)) return true
  return leastOf(given, wanted)?.every((it) => holds({ ...wanted, argument: 'it' }, { it }, reading)) ?? false
}

/** What the second has to hold of, to hold wherever the first does; undefined: that cannot be said. */
function leastOf(given: Predicate, wanted: Predicate): readonly unknown[] | undefined {
  if ('equals' in given) return [given.equals]
  if ('oneOf' in given) return given.oneOf
  if ('prefix' in given && 'prefix' in wanted) return [given.prefix]
  return 'words' in given && 'words' in wanted ? [given.words] : undefined
}

/** `deny files_write of clerk where path is in src/**`, for people. */
export function describeRule({ decision, tool, effect, agent, thread, where = [], only }: PolicyRule): string {
  const what = tool === undefined ? (effect === undefined ? 'everything' : `every ${effect}`) : tool
  return [
    `${decision} ${what}`,
    ...(tool !== undefined && effect !== undefined ? [`as a ${effect}`] : []),
    ...(agent === undefined ? [] : [`of ${agent}`]),
    ...(thread === undefined ? [] : [`in ${thread}`]),
    ...where.map((condition, index) => `${index === 0 ? 'where' : 'and'} ${describeCondition(condition)}`),
    ...(only === true ? [where.length === 0 ? 'without arguments' : 'and there is no other argument'] : []),
  ].join(' ')
}

function describeCondition(condition: Predicate): string {
  const { argument } = condition
  if ('equals' in condition) return `${argument} is ${JSON.stringify(condition.equals)}`
  if ('oneOf' in condition) return `${argument} is one of ${JSON.stringify(condition.oneOf)}`
  if ('prefix' in condition) return `${argument} begins with ${JSON.stringify(condition.prefix)}`
  if ('path' in condition) return `${argument} is a path in ${JSON.stringify(condition.path)}`
  return `${argument} begins with the words ${JSON.stringify(condition.words)}`
}
