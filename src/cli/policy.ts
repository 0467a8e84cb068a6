import type { Command } from 'commander'

import { describeRule, ruleProblems } from '../actions/policy-check.ts'
import type { RuleProblem } from '../actions/policy-check.ts'
import { judge, matches } from '../actions/policy.ts'
import type { Judged, PolicyRule, Verdict } from '../actions/policy.ts'
import { removeRule, rulesInForce, storedRules } from '../actions/rule.ts'
import { HoldfastError } from '../base/errors.ts'
import { effectOfCall } from '../loop/reply.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import type { SetExit } from './main.ts'
import { ago, table, visible } from './output.ts'
import { decider, refuseInsideRun } from './person.ts'

interface ExplainFlags {
  readonly agent: string
  readonly tool: string
  readonly input?: string
  readonly thread?: string
  readonly effect?: string
}

export function addPolicy(program: Command, setExit: SetExit): void {
  const policy = program.command('policy').description('which actions are allowed, which ask, which are denied')
  policy
    .command('check')
    .description('rules that can never decide anything, and names that nothing has')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, check)))
  policy
    .command('explain')
    .description('what an action would get, and why')
    .requiredOption('--agent <name>', 'whose action')
    .requiredOption('--tool <name>', 'of which tool')
    .option('--input <json>', 'its arguments', '{}')
    .option('--thread <thread>', 'in which thread')
    .option('--effect <effect>', 'read or write, for a tool that only its server knows')
    .action(async (flags: ExplainFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => explain(context, flags)))
    })
  const rules = policy.command('rules').description('the rules that people made by saying "always"')
  rules
    .command('list', { isDefault: true })
    .description('those in force, oldest first')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, list, 'welcome')))
  rules
    .command('remove')
    .description('take one back: from now on its calls are asked for again')
    .argument('<rule>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => remove(context, id), 'welcome')),
    )
}

const nameOf = ({ name }: PolicyRule, index: number) => name ?? `policy rule ${index + 1}`

/** Those of the configuration, then those that were made. */
async function allRules({ runtime }: Context): Promise<PolicyRule[]> {
  return [...(runtime.config?.policy ?? []), ...(await runtime.store.read(rulesInForce))]
}

async function check(context: Context): Promise<number> {
  const rules = await allRules(context)
  const found = [
    ...ruleProblems(rules).map((problem) => ({ kind: problem.kind as string, text: inWords(rules, problem) })),
    ...strayConditions(context, rules),
    ...unusedTools(context),
  ]
  context.output.result({ rules: rules.length, problems: found }, () =>
    found.length === 0
      ? `${rules.length} rules, and nothing to say about them`
      : visible(found.map(({ text }) => text).join('\n')),
  )
  return found.length === 0 ? EXIT.done : EXIT.failed
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
function strayConditions({ runtime }: Context, rules: readonly PolicyRule[]) {
  const tools = new Map(runtime.agents.flatMap((agent) => [...(runtime.toolsOf(agent) ?? [])]))
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

function unusedTools({ runtime }: Context) {
  const { config } = runtime
  if (config === undefined) return []
  const used = new Set([...config.agents.values()].flatMap((agent) => (agent.kind === 'model' ? agent.tools : [])))
  const unused = [...config.tools.keys()].filter((tool) => !used.has(tool))
  return unused.map((tool) => ({ kind: 'unused', text: `the tool ${tool} is there, and no agent may use it` }))
}

async function explain(context: Context, flags: ExplainFlags): Promise<number> {
  const action = await judgedOf(context, flags)
  const rules = await allRules(context)
  const verdict = judge(rules, action)
  const matching = rules
    .map((rule, index) => ({ rule, name: nameOf(rule, index) }))
    .filter(({ rule }) => matches(rule, action))
  const others = matching.filter(({ rule }) => rule !== verdict.rule)
  const value = {
    decision: verdict.kind,
    by: verdict.by,
    via: verdict.via,
    action,
    ...(verdict.rule === undefined ? {} : { rule: verdict.rule }),
    overruled: others,
  }
  context.output.result(value, () => visible([sentence(verdict), ...others.map(overruled)].join('\n')))
  return EXIT.done
}

function sentence({ kind, by, rule }: Verdict): string {
  const meaning = { allow: 'allow', deny: 'deny', ask: 'ask: it would wait for a person' }[kind]
  return rule === undefined ? `${meaning}, because there is ${by}` : `${meaning}, by ${by}: ${describeRule(rule)}`
}

const overruled = ({ rule, name }: { rule: PolicyRule; name: string }) =>
  `  it also matches ${name}: ${describeRule(rule)}`

/** With the input as the tool would get it: its defaults filled in. */
async function judgedOf(
  { runtime, output }: Context,
  { agent, tool: name, input: given = '{}', thread, effect }: ExplainFlags,
): Promise<Judged> {
  if (!runtime.agents.includes(agent)) {
    const remedy = runtime.agents.length === 0 ? 'no agents are configured' : `there are ${runtime.agents.join(', ')}`
    throw new HoldfastError('not-found/agent', `there is no agent "${agent}"`, { remedy })
  }
  if (effect !== undefined && effect !== 'read' && effect !== 'write')
    throw new HoldfastError('usage/effect', `"${effect}" is no effect`, { remedy: 'it is read or write' })
  const tool = await runtime.toolOf(agent, name)
  const input = parsed(given)
  const checked = tool?.validate(input)
  if (tool === undefined)
    output.note(`${agent} has no tool ${name} of its own; it is looked at as a ${effect ?? 'write'}`)
  if (checked !== undefined && 'error' in checked) output.note(`the tool would refuse this input: ${checked.error}`)
  const judged = checked !== undefined && 'input' in checked ? checked.input : input
  return {
    agent,
    tool: name,
    effect: tool === undefined ? (effect === 'read' ? 'read' : 'write') : effectOfCall(tool, judged),
    input: judged,
    ...(thread === undefined ? {} : { thread }),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new HoldfastError('usage/input', '--input is not JSON', {
      remedy: `as in --input '{"path": "src/a.ts"}'`,
      cause,
    })
  }
}

const iso = (instant: number) => new Date(instant).toISOString()

async function list({ runtime, output }: Context): Promise<number> {
  const rules = await runtime.store.read(storedRules)
  const now = runtime.clock.now()
  const views = rules.map(({ id, rule, madeBy, madeFrom, madeAt }) => ({
    id,
    rule,
    madeBy,
    ...(madeFrom === null ? {} : { madeFrom }),
    madeAt: iso(madeAt),
  }))
  output.result(views, () =>
    rules.length === 0
      ? 'no rules were made; those of the configuration are in its file'
      : table(
          ['RULE', 'MADE', 'BY', 'WHAT'],
          rules.map(({ id, rule, madeBy, madeAt }) => [id, ago(madeAt, now), madeBy, describeRule(rule)]),
        ),
  )
  return EXIT.done
}

async function remove(context: Context, given: string): Promise<number> {
  refuseInsideRun(context)
  const { runtime, output } = context
  const found = (await runtime.store.read(storedRules)).filter(({ id }) => id.startsWith(given) && given !== '')
  const [only, second] = found
  if (only === undefined)
    throw new HoldfastError('not-found/rule', `there is no rule "${given}"`, {
      remedy: '`holdfast policy rules` shows those that can be taken back',
    })
  if (second !== undefined && only.id !== given)
    throw new HoldfastError('usage/ambiguous', `several rules begin with "${given}"`, { remedy: 'give more of the id' })
  await runtime.store.apply(removeRule, only.id, decider().by)
  output.result({ id: only.id, rule: only.rule }, () => visible(`${only.id} is taken back: ${describeRule(only.rule)}`))
  return EXIT.done
}
