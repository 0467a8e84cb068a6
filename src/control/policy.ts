import { iso } from '../base/clock.ts'
import { describeRule, ruleProblems } from '../actions/policy-check.ts'
import type { RuleProblem } from '../actions/policy-check.ts'
import { judge, matches } from '../actions/policy.ts'
import type { Judged, PolicyRule } from '../actions/policy.ts'
import { removeRule, rulesInForce, storedRules } from '../actions/rule.ts'
import type { StoredRule } from '../actions/rule.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { effectOfCall } from '../loop/reply.ts'
import type { Runtime } from '../runtime.ts'
import type { Desk } from './desk.ts'
import { onlyOne } from './find.ts'
import { filled } from './page.ts'

/** Which actions are allowed, which ask, which are denied: in words that a person can check. */

const nameOf = ({ name }: PolicyRule, index: number) => name ?? `policy rule ${index + 1}`

type RuleView = Answer<'policy.list'>['items'][number]

const viewMade = ({ id, rule, madeBy, madeFrom, madeAt }: StoredRule) =>
  ({
    id,
    from: 'always',
    rule,
    words: describeRule(rule),
    madeBy,
    ...(madeFrom === null ? {} : { madeFrom }),
    madeAt: iso(madeAt),
  }) as unknown as RuleView

/** Those of the configuration, then those that were made. */
export async function list(desk: Desk): Promise<Answer<'policy.list'>> {
  const configured = (desk.runtime.config?.policy ?? []).map(
    (rule) => ({ from: 'configuration', rule, words: describeRule(rule) }) as unknown as RuleView,
  )
  return { items: [...configured, ...(await desk.read(storedRules)).map(viewMade)] }
}

export async function remove(desk: Desk, { rule: given }: Ask<'policy.remove'>): Promise<Answer<'policy.remove'>> {
  const all = await desk.read(storedRules)
  const exact = all.filter(({ id }) => id === given)
  const found = exact.length > 0 ? exact : all.filter(({ id }) => id.startsWith(given))
  const only = onlyOne(found, 'rule', given, '`holdfast policy rules` shows those that can be taken back')
  await desk.apply(removeRule, only.id, desk.who.by)
  return viewMade(only)
}

const allRules = async (desk: Desk): Promise<PolicyRule[]> => [
  ...(desk.runtime.config?.policy ?? []),
  ...(await desk.read(rulesInForce)),
]

export async function check(desk: Desk): Promise<Answer<'policy.check'>> {
  const rules = await allRules(desk)
  const problems = [
    ...ruleProblems(rules).map((problem) => ({ kind: problem.kind as string, text: inWords(rules, problem) })),
    ...(await strayConditions(desk.runtime, rules)),
    ...unusedTools(desk.runtime),
  ]
  return { rules: rules.length, problems }
}

const WORDS: Readonly<Record<RuleProblem['kind'], string>> = {
  shadowed: 'never decides anything: a deny that covers all of it wins',
  contradiction: 'never decides anything: another says the opposite of exactly the same, and wins',
  repeated: 'adds nothing: another says the same of all that it covers',
}

function inWords(rules: readonly PolicyRule[], { kind, rule, by }: RuleProblem): string {
  const named = (index: number) => `${nameOf(rules[index]!, index)} (${describeRule(rules[index]!)})`
  return `${named(rule)} ${WORDS[kind]}: ${named(by)}`
}

/** A condition on an argument that its tool does not have never holds: a deny with a typing mistake protects nothing. */
async function strayConditions(runtime: Runtime, rules: readonly PolicyRule[]) {
  const each = await Promise.all(runtime.agents.map((agent) => runtime.toolsOf(agent)))
  const tools = new Map(each.flatMap((own) => [...(own ?? [])]))
  return rules.flatMap((rule, index) => {
    const schema = rule.tool === undefined ? undefined : tools.get(rule.tool)?.inputSchema
    const known = schema?.['properties'] === undefined ? undefined : Object.keys(schema['properties'] as object)
    const stray = (rule.where ?? []).filter(({ argument }) => known?.includes(argument.split('.')[0] ?? '') === false)
    return stray.map(({ argument }) => ({
      kind: 'stray',
      text: `${nameOf(rule, index)} (${describeRule(rule)}) never matches: ${rule.tool} has no argument "${argument}"; it has ${known?.join(', ')}`,
    }))
  })
}

function unusedTools({ config }: Runtime) {
  if (config === undefined) return []
  const used = new Set([...config.agents.values()].flatMap((agent) => (agent.kind === 'model' ? agent.tools : [])))
  const unused = [...config.tools.keys()].filter((tool) => !used.has(tool))
  return unused.map((tool) => ({ kind: 'unused', text: `the tool ${tool} is there, and no agent may use it` }))
}

export async function explain(desk: Desk, ask: Ask<'policy.explain'>): Promise<Answer<'policy.explain'>> {
  const { action, remarks } = await judgedOf(desk.runtime, ask)
  const rules = await allRules(desk)
  const verdict = judge(rules, action)
  const matching = rules
    .map((rule, index) => ({ rule, name: nameOf(rule, index) }))
    .filter(({ rule }) => matches(rule, action))
  const value = {
    decision: verdict.kind,
    by: verdict.by,
    via: verdict.via,
    action,
    ...filled({ rule: verdict.rule }),
    overruled: matching.filter(({ rule }) => rule !== verdict.rule),
    remarks,
  }
  return value as unknown as Answer<'policy.explain'>
}

/** With the input as the tool would get it: its defaults filled in. */
async function judgedOf(runtime: Runtime, ask: Ask<'policy.explain'>): Promise<{ action: Judged; remarks: string[] }> {
  const { agent, tool: name, thread, effect, input = {} } = ask
  if (!runtime.agents.includes(agent)) {
    const remedy = runtime.agents.length === 0 ? 'no agents are configured' : `there are ${runtime.agents.join(', ')}`
    throw new HoldfastError('not-found/agent', `there is no agent "${agent}"`, { remedy })
  }
  const tool = await runtime.toolOf({ agent, workspace: null }, name)
  const checked = tool?.validate(input)
  const unknown = tool === undefined
  const remarks = [
    ...(unknown ? [`${agent} has no tool ${name} of its own; it is looked at as a ${effect ?? 'write'}`] : []),
    ...(checked !== undefined && 'error' in checked ? [`the tool would refuse this input: ${checked.error}`] : []),
  ]
  const judged = checked !== undefined && 'input' in checked ? checked.input : input
  const action = {
    agent,
    tool: name,
    effect: tool === undefined ? (effect ?? 'write') : effectOfCall(tool, judged),
    input: judged,
    ...filled({ thread }),
  }
  return { action, remarks }
}
