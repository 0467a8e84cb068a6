import { hasOnly, holds, narrowness, readingOf } from './predicate.ts'
import type { Predicate } from './predicate.ts'

/** A rule. What it does not name matches everything. */
export interface PolicyRule {
  readonly tool?: string
  readonly effect?: 'read' | 'write'
  /** Whose calls: of every agent, of one, or of one thread. */
  readonly agent?: string
  readonly thread?: string
  /** All of these must hold of its arguments. */
  readonly where?: readonly Predicate[]
  /** It has no argument that `where` does not name. So are the rules that "always" makes; a configuration has none. */
  readonly only?: true
  readonly decision: 'allow' | 'deny' | 'ask'
  /** What it is called where a decision says who made it. */
  readonly name?: string
}

export interface Judged {
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly agent: string
  readonly thread?: string
  readonly input?: unknown
}

export interface Verdict {
  readonly kind: 'allow' | 'ask' | 'deny'
  /** Which rule, in words. */
  readonly by: string
  readonly via: 'configuration' | 'stored rule' | 'default' | 'schedule' | 'program'
  readonly rule?: PolicyRule
}

/**
 * Deny wins; then the most specific rule, and of two that are as specific the one that asks. Where nothing matches, a read is
 * allowed and a write asks a person.
 */
export function judge(rules: readonly PolicyRule[], action: Judged): Verdict {
  const matching = rules.map((rule, index) => ({ rule, index })).filter(({ rule }) => matches(rule, action))
  const [strongest] = matching.toSorted((a, b) => compareRules(a.rule, b.rule))
  if (strongest === undefined) {
    return action.effect === 'read'
      ? { kind: 'allow', by: 'no rule, and it only reads', via: 'default' }
      : { kind: 'ask', by: 'no rule, and it writes', via: 'default' }
  }
  const { rule, index } = strongest
  const via = rule.name === undefined ? 'configuration' : 'stored rule'
  return { kind: rule.decision, by: rule.name ?? `policy rule ${index + 1}`, via, rule }
}

/** The stronger one first. */
function compareRules(a: PolicyRule, b: PolicyRule): number {
  if ((a.decision === 'deny') !== (b.decision === 'deny')) return a.decision === 'deny' ? -1 : 1
  const bySpecificity = specificity(b) - specificity(a)
  if (bySpecificity !== 0) return bySpecificity
  return a.decision === b.decision ? 0 : a.decision === 'ask' ? -1 : 1
}

/** What it says about the call counts first, then whose call it is. */
function specificity({ tool, effect, agent, thread, where = [], only }: PolicyRule): number {
  const conditions = where.reduce((total, each) => total + narrowness(each), only === true ? 1 : 0)
  const named = tool === undefined ? 0 : tool.endsWith('*') ? 1 : 2
  const scope = thread === undefined ? (agent === undefined ? 0 : 1) : 2
  return named * 10_000 + conditions * 10 + (effect === undefined ? 0 : 3) + scope
}

export const matches = (rule: PolicyRule, action: Judged): boolean =>
  (rule.tool === undefined || isTool(rule.tool, action.tool)) &&
  (rule.effect === undefined || rule.effect === action.effect) &&
  (rule.agent === undefined || rule.agent === action.agent) &&
  (rule.thread === undefined || rule.thread === action.thread) &&
  (rule.where ?? []).every((predicate) => holds(predicate, action.input, readingOf(rule.decision))) &&
  (rule.only !== true || hasOnly(rule.where ?? [], action.input))

/** `files__*` is every tool of an MCP server; no tool has a star in its name. */
const isTool = (pattern: string, tool: string) =>
  pattern.endsWith('*') ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool
