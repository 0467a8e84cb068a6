import type { Command } from 'commander'

import { describeRule } from '../../actions/policy-check.ts'
import type { PolicyRule } from '../../actions/policy.ts'
import type { Answer } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import { jsonOption } from '../words/json-option.ts'
import type { SetExit } from '../main.ts'
import { ago, table, visible } from '../words/output.ts'
import { refuseInsideRun } from '../around/person.ts'

interface ExplainFlags {
  readonly agent: string
  readonly tool: string
  readonly input?: string
  readonly thread?: string
  readonly effect?: string
}

export function addPolicy(policy: Command, setExit: SetExit): void {
  policy
    .command('check')
    .description('rules that can never decide anything, and names that nothing has')
    .action(async (_: unknown, command: Command) => setExit(await withApi(command, check, 'needed')))
  policy
    .command('explain')
    .description('what an action would get, and why')
    .requiredOption('--agent <name>', 'whose action')
    .requiredOption('--tool <name>', 'of which tool')
    .option('--input <json>', 'its arguments', '{}')
    .option('--thread <thread>', 'in which thread')
    .option('--effect <effect>', 'read or write, for a tool that only its server knows')
    .action(async (flags: ExplainFlags, command: Command) => {
      setExit(await withApi(command, (operator) => explain(operator, flags), 'needed'))
    })
  const rules = policy.command('rules').description('the rules that people made by saying "always"')
  rules
    .command('list', { isDefault: true })
    .description('those in force, oldest first')
    .action(async (_: unknown, command: Command) => setExit(await withApi(command, list)))
  rules
    .command('remove')
    .description('take one back: from now on its calls are asked for again')
    .argument('<rule>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => remove(operator, id))),
    )
}

async function check({ api, output }: Operator): Promise<number> {
  const { rules, problems } = await api.call('policy.check', {})
  output.result({ rules, problems }, () =>
    problems.length === 0
      ? `${rules} rules, and nothing to say about them`
      : visible(problems.map(({ text }) => text).join('\n')),
  )
  return problems.length === 0 ? EXIT.done : EXIT.failed
}

async function explain({ api, output }: Operator, flags: ExplainFlags): Promise<number> {
  const { agent, tool, input = '{}', thread, effect } = flags
  if (effect !== undefined && effect !== 'read' && effect !== 'write')
    throw new HoldfastError('usage/effect', `"${effect}" is no effect`, { remedy: 'it is read or write' })
  const { remarks, ...explained } = await api.call('policy.explain', {
    agent,
    tool,
    input: jsonOption('--input', input, '{"path": "src/a.ts"}'),
    ...(thread === undefined ? {} : { thread }),
    ...(effect === undefined ? {} : { effect }),
  })
  for (const remark of remarks) output.note(remark)
  output.result(explained, () => visible([sentence(explained), ...explained.overruled.map(overruled)].join('\n')))
  return EXIT.done
}

type Explained = Omit<Answer<'policy.explain'>, 'remarks'>

function sentence({ decision, by, rule }: Explained): string {
  const meaning = { allow: 'allow', deny: 'deny', ask: 'ask: it would wait for a person' }[decision]
  if (rule === undefined) return `${meaning}, because there is ${by}`
  return `${meaning}, by ${by}: ${describeRule(rule as PolicyRule)}`
}

const overruled = ({ rule, name }: Explained['overruled'][number]) =>
  `  it also matches ${name}: ${describeRule(rule as PolicyRule)}`

async function list({ api, output, clock }: Operator): Promise<number> {
  const made = (await api.call('policy.list', {})).items.filter(({ from }) => from === 'always')
  const now = clock.now()
  output.result(
    made.map(({ id, rule, madeBy, madeFrom, madeAt }) => ({ id, rule, madeBy, madeFrom, madeAt })),
    () =>
      table(
        ['RULE', 'MADE', 'BY', 'WHAT'],
        made.map(({ id = '', words, madeBy = '', madeAt = '' }) => [id, ago(Date.parse(madeAt), now), madeBy, words]),
        'no rules were made; those of the configuration are in its file',
      ),
  )
  return EXIT.done
}

async function remove(operator: Operator, given: string): Promise<number> {
  refuseInsideRun(operator)
  const { id, rule, words } = await operator.api.call('policy.remove', { rule: given })
  operator.output.result({ id, rule }, () => visible(`${id} is taken back: ${words}`))
  return EXIT.done
}
