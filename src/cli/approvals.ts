import type { Command } from 'commander'

import { approveAlways } from '../actions/always.ts'
import { decideApproval } from '../actions/decide.ts'
import type { Answer, Decided } from '../actions/decide.ts'
import { askedMatters, viewAsked } from '../actions/desk.ts'
import type { AskedMatter } from '../actions/desk.ts'
import { describeRule } from '../actions/policy-check.ts'
import { narrowestRule } from '../actions/rule.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { editCall } from './approvals-edit.ts'
import type { EditFlags } from './approvals-edit.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import { theApproval } from '../control/find.ts'
import type { SetExit } from './main.ts'
import { ago, table, visible } from './output.ts'
import { askLine, decider, hasTerminal, noteIfNobodyWorks, refuseInsideRun } from './person.ts'
import { describeAsked } from './show-matter.ts'

interface DecisionFlags {
  readonly digest?: string
  readonly note?: string
  readonly yes?: boolean
}

export function addApprovals(program: Command, setExit: SetExit): void {
  const approvals = program
    .command('approvals')
    .description('what waits for a yes or a no; in a terminal, one by one')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, desk, 'welcome')))
  approvals
    .command('list')
    .description('what waits for a decision, oldest first')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, list, 'welcome')))
  approvals
    .command('show')
    .description('the exact bytes that would run, who asks and until when')
    .argument('<approval>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withRuntime(command, (context) => show(context, id), 'welcome')),
    )
  const verbs = [
    ['approve', 'yes, this once'],
    ['skip', 'not this one; the agent goes on without it'],
    ['deny', 'no'],
  ] as const
  for (const [kind, description] of verbs) {
    deciding(approvals, kind, description).action(async (id: string, flags: DecisionFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => decide(context, id, kind, flags), 'welcome'))
    })
  }
  deciding(approvals, 'edit', 'change its arguments; the changed call asks for a yes of its own')
    .requiredOption('--input <json>', 'all of its arguments, as they are to be')
    .action(async (id: string, flags: EditFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => editCall(context, id, flags)))
    })
  deciding(approvals, 'always', 'yes, and from now on to exactly this call; shows the rule that it makes first')
    .option('--yes', 'make the rule without asking')
    .action(async (id: string, flags: DecisionFlags, command: Command) => {
      setExit(await withRuntime(command, (context) => always(context, id, flags), 'welcome'))
    })
}

const deciding = (approvals: Command, name: string, description: string): Command =>
  approvals
    .command(name)
    .description(description)
    .argument('<approval>')
    .option('--digest <digest>', 'only if it is exactly what was shown with this digest')
    .option('--note <text>', 'why, for the record and for the agent')

async function list({ runtime, output }: Context): Promise<number> {
  const matters = await runtime.store.read(askedMatters, LIMITS.page)
  const now = runtime.clock.now()
  output.result(matters.map(viewAsked), () =>
    matters.length === 0
      ? 'nothing waits for a decision'
      : table(
          ['APPROVAL', 'AGENT', 'TOOL', 'ASKED', 'INPUT'],
          matters.map(({ approval, action, run }) => {
            return [approval.id, run.agent, action.tool, ago(approval.askedAt, now), brief(action.input)]
          }),
        ),
  )
  return EXIT.done
}

const SHOWN = 80

/** A list is to find one's way; `show` has every byte. */
export function brief(input: unknown): string {
  const text = visible(JSON.stringify(input))
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}… (${text.length - SHOWN} more)`
}

async function show({ runtime, output }: Context, given: string): Promise<number> {
  const matter = await theApproval(runtime.store, given)
  output.result(viewAsked(matter), () => describeAsked(matter))
  return EXIT.done
}

async function decide(context: Context, given: string, kind: Answer['kind'], flags: DecisionFlags): Promise<number> {
  refuseInsideRun(context)
  const matter = await theApproval(context.runtime.store, given)
  const decided = await context.runtime.store.apply(decideApproval, matter.approval.id, {
    ...answerOf(matter, flags),
    kind,
  })
  return report(context, matter, decided)
}

const answerOf = ({ approval }: AskedMatter, { digest = approval.digest, note }: DecisionFlags) => ({
  ...decider(),
  digest,
  ...(note === undefined ? {} : { note }),
})

async function report(context: Context, matter: AskedMatter, decided: Decided, rule?: string): Promise<number> {
  const { approval } = taken(matter, decided)
  const after = viewAsked({ ...matter, ...decided, approval })
  context.output.result(
    rule === undefined ? after : { ...after, ruleId: rule },
    () => `${approval.id} ${approval.state}`,
  )
  await noteIfNobodyWorks(context)
  return EXIT.done
}

/** A lost race is said with who won it. */
function taken({ approval }: AskedMatter, decided: Decided): Extract<Decided, { kind: 'decided' }> {
  if (decided.kind === 'decided') return decided
  if (decided.kind === 'changed')
    throw new HoldfastError('approvals/changed', `${approval.id} is not what has that digest`, {
      remedy: `\`holdfast approvals show ${approval.id}\` shows what would run`,
    })
  const { state, decidedBy } = decided.kind === 'unknown' ? approval : decided.approval
  const by = decidedBy === null ? '' : `, by ${decidedBy}`
  const how = state === 'pending' ? 'has expired' : `has been decided already: ${state}${by}`
  throw new HoldfastError('approvals/too-late', `${approval.id} ${how}`, { remedy: 'nothing was changed' })
}

async function always(context: Context, given: string, flags: DecisionFlags): Promise<number> {
  refuseInsideRun(context)
  const { runtime, output } = context
  const matter = await theApproval(runtime.store, given)
  const { action, run, approval } = matter
  const narrow = narrowestRule(action, run.agent)
  if ('refused' in narrow) {
    throw new HoldfastError('approvals/no-rule', `there can be no rule for this: ${narrow.refused}`, {
      remedy: `\`holdfast approvals approve ${approval.id}\` allows it this once`,
    })
  }
  const sentence = describeRule(narrow.rule)
  if (flags.yes !== true) output.note(`this makes a rule: ${visible(sentence)}`)
  if (flags.yes !== true && !(await isConfirmed())) {
    throw new HoldfastError('approvals/not-confirmed', `no rule was made: ${sentence}`, {
      remedy: '--yes makes it; nothing was decided so far',
    })
  }
  const { by } = decider()
  const id = `rule_${approval.id.slice(approval.id.indexOf('_') + 1)}`
  const rule = { id, rule: narrow.rule, by, from: action.id }
  const decided = await runtime.store.apply(approveAlways, approval.id, answerOf(matter, flags), rule)
  if (decided.kind === 'decided') output.note(`from now on: ${visible(sentence)} (${id})`)
  return report(context, matter, decided, id)
}

const isConfirmed = async () => hasTerminal() && ['y', 'yes'].includes((await askLine('make it? [y/N] ')) ?? '')

/** Without a verb: one by one where somebody sits at a terminal, a list elsewhere. */
async function desk(context: Context): Promise<number> {
  if (context.output.json || !hasTerminal()) return list(context)
  refuseInsideRun(context)
  const { store } = context.runtime
  const left = new Set<string>()
  for (;;) {
    // Read again each time: what somebody else has decided meanwhile is not asked for.
    const matters = (await store.read(askedMatters, LIMITS.page)).filter(({ approval }) => !left.has(approval.id))
    const [matter] = matters
    if (matter === undefined) break
    left.add(matter.approval.id)
    process.stderr.write(`\n${describeAsked(matter)}\n\n`)
    if ((await decideHere(context, matter, matters.length - 1)) === 'quit') break
  }
  const still = (await store.read(askedMatters, LIMITS.page)).length
  process.stdout.write(still === 0 ? 'nothing waits for a decision\n' : `still waiting: ${still}\n`)
  return EXIT.done
}

const KEYS: Readonly<Record<string, Answer['kind'] | 'always' | 'quit' | 'later'>> = {
  a: 'approve',
  approve: 'approve',
  s: 'skip',
  skip: 'skip',
  d: 'deny',
  deny: 'deny',
  always: 'always',
  n: 'later',
  next: 'later',
  q: 'quit',
  quit: 'quit',
}

async function decideHere(context: Context, matter: AskedMatter, more: number): Promise<'quit' | 'next'> {
  for (;;) {
    const line = await askLine(`[a]pprove [s]kip [d]eny always [n]ext [q]uit${more === 0 ? '' : ` (${more} more)`}: `)
    const meant = line === undefined ? 'quit' : KEYS[line]
    if (meant === undefined) continue
    if (meant === 'quit') return 'quit'
    if (meant === 'later') return 'next'
    try {
      const { id, digest } = matter.approval
      if (meant === 'always') await always(context, id, { digest })
      else await decide(context, id, meant, { digest })
      return 'next'
    } catch (error) {
      // What cannot be done is said, and the question stays.
      if (!(error instanceof HoldfastError)) throw error
      context.output.note(visible(`${error.message}${error.remedy === undefined ? '' : `; ${error.remedy}`}`))
      if (error.code === 'approvals/too-late') return 'next'
    }
  }
}
