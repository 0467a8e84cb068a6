import type { Decision } from './action.ts'

/** A rule of the configuration. What it does not name matches everything. */
export interface PolicyRule {
  readonly tool?: string
  readonly effect?: 'read' | 'write'
  readonly agent?: string
  readonly decision: 'allow' | 'deny' | 'ask'
}

export interface Judged {
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly agent: string
}

/**
 * Deny wins; then allow. Where nothing matches, what the agent was given it may use. Nobody can be asked yet, so `ask`
 * is refused: an answer that is missing is not a yes.
 */
export function judge(rules: readonly PolicyRule[], action: Judged): Decision {
  const matching = rules.map((rule, index) => ({ rule, index })).filter(({ rule }) => matches(rule, action))
  const denied = matching.find(({ rule }) => rule.decision === 'deny')
  if (denied !== undefined) return { kind: 'deny', by: `policy rule ${denied.index + 1}`, via: 'configuration' }
  const asked = matching.find(({ rule }) => rule.decision === 'ask')
  if (asked !== undefined) {
    return {
      kind: 'deny',
      by: `policy rule ${asked.index + 1}, which asks a person, and nobody can be asked yet`,
      via: 'configuration',
    }
  }
  const allowed = matching.find(({ rule }) => rule.decision === 'allow')
  return {
    kind: 'allow',
    by: allowed === undefined ? 'the agent has this tool' : `policy rule ${allowed.index + 1}`,
    via: 'configuration',
  }
}

const matches = (rule: PolicyRule, action: Judged) =>
  (rule.tool === undefined || isTool(rule.tool, action.tool)) &&
  (rule.effect === undefined || rule.effect === action.effect) &&
  (rule.agent === undefined || rule.agent === action.agent)

/** `files__*` is every tool of an MCP server; no tool has a star in its name. */
const isTool = (pattern: string, tool: string) =>
  pattern.endsWith('*') ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool
