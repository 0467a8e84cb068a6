import type { Command } from 'commander'

import type { Answer } from '../../api/routes.ts'
import { HoldfastError } from '../../base/errors.ts'
import { LIMITS } from '../../base/limits.ts'
import { editCall } from './approvals-edit.ts'
import type { EditFlags } from './approvals-edit.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ago, table, visible } from '../words/output.ts'
import { askLine, hasTerminal, isConfirmed, noteIfNobodyWorks, refuseInsideRun } from '../around/person.ts'
import { describeAsked } from './show-matter.ts'
import type { ApprovalView } from '../words/views.ts'

interface DecisionFlags {
  readonly digest?: string
  readonly note?: string
  readonly yes?: boolean
}

export function addApprovals(approvals: Command, setExit: SetExit): void {
  approvals.action(async (_: unknown, command: Command) => setExit(await withApi(command, desk)))
  approvals
    .command('list')
    .description('what waits for a decision, oldest first')
    .action(async (_: unknown, command: Command) => setExit(await withApi(command, list)))
  approvals
    .command('show')
    .description('the exact bytes that would run, who asks and until when')
    .argument('<approval>')
    .action(async (id: string, _: unknown, command: Command) =>
      setExit(await withApi(command, (operator) => show(operator, id))),
    )
  const verbs = [
    ['approve', 'yes, this once'],
    ['skip', 'not this one; the agent goes on without it'],
    ['deny', 'no'],
  ] as const
  for (const [kind, description] of verbs) {
    deciding(approvals, kind, description).action(async (id: string, flags: DecisionFlags, command: Command) => {
      setExit(await withApi(command, (operator) => decide(operator, id, kind, flags)))
    })
  }
  deciding(approvals, 'edit', 'change its arguments; the changed call asks for a yes of its own')
    .requiredOption('--input <json>', 'all of its arguments, as they are to be')
    .action(async (id: string, flags: EditFlags, command: Command) => {
      setExit(await withApi(command, (operator) => editCall(operator, id, flags), 'needed'))
    })
  deciding(approvals, 'always', 'yes, and from now on to exactly this call; shows the rule that it makes first')
    .option('--yes', 'make the rule without asking')
    .action(async (id: string, flags: DecisionFlags, command: Command) => {
      setExit(await withApi(command, (operator) => always(operator, id, flags)))
    })
}

const deciding = (approvals: Command, name: string, description: string): Command =>
  approvals
    .command(name)
    .description(description)
    .argument('<approval>')
    .option('--digest <digest>', 'only if it is exactly what was shown with this digest')
    .option('--note <text>', 'why, for the record and for the agent')

async function list({ api, output, clock }: Operator): Promise<number> {
  const { items } = await api.call('approvals.list', { limit: LIMITS.page })
  const now = clock.now()
  output.result(items, () =>
    table(
      ['APPROVAL', 'AGENT', 'TOOL', 'ASKED', 'INPUT'],
      items.map(({ id, agent, tool, askedAt, input }) => {
        return [id, agent, tool, ago(Date.parse(askedAt), now), brief(input)]
      }),
      'nothing waits for a decision',
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

async function show({ api, output }: Operator, given: string): Promise<number> {
  const approval = await api.call('approvals.show', { approval: given })
  output.result(approval, () => describeAsked(approval))
  return EXIT.done
}

type Kind = 'approve' | 'skip' | 'deny'

async function decide(operator: Operator, given: string, decision: Kind, flags: DecisionFlags): Promise<number> {
  refuseInsideRun(operator)
  const { id, digest } = await operator.api.call('approvals.show', { approval: given })
  const answer = { approval: id, ...answerOf(digest, flags) }
  return report(operator, await operator.api.call('approvals.decide', { ...answer, decision }))
}

/** Bound to what was shown, or to what is there now if nobody says what was. */
const answerOf = (now: string, { digest = now, note }: DecisionFlags) => ({
  digest,
  ...(note === undefined ? {} : { note }),
})

async function report(operator: Operator, decided: Answer<'approvals.decide'>): Promise<number> {
  const { rule: _, ...after } = decided
  operator.output.result(after, () => `${after.id} ${after.state}`)
  const { request } = await operator.api.call('runs.show', { run: after.runId })
  if (request.kind === 'observed') noteHowToGoOn(operator, after.resume)
  else await noteIfNobodyWorks(operator)
  return EXIT.done
}

/** The turn of a session goes on in its own client, and only there. */
function noteHowToGoOn({ output }: Operator, resume: string | undefined): void {
  if (resume !== undefined)
    output.note(`its client goes on with: ${visible(resume)} (of an agent of yours the daemon does it)`)
}

async function always(operator: Operator, given: string, flags: DecisionFlags): Promise<number> {
  refuseInsideRun(operator)
  const { api, output } = operator
  const approval = await api.call('approvals.show', { approval: given })
  const { id, digest } = approval
  const sentence = ruleOf(approval)
  if (flags.yes !== true && sentence !== undefined) {
    output.note(`this makes a rule: ${visible(sentence)}`)
    if (!(await isConfirmed('make it?'))) {
      throw new HoldfastError('approvals/not-confirmed', `no rule was made: ${sentence}`, {
        remedy: '--yes makes it; nothing was decided so far',
      })
    }
  }
  const decided = await api.call('approvals.always', { approval: id, ...answerOf(digest, flags) })
  output.note(`from now on: ${visible(decided.rule ?? '')} (${decided.ruleId})`)
  return report(operator, decided)
}

/** What saying "always" would allow; of what cannot be, or is decided, the answer says why. */
const ruleOf = ({ always: would }: ApprovalView): string | undefined =>
  would !== undefined && 'rule' in would ? would.rule : undefined

/** Without a verb: one by one where somebody sits at a terminal, a list elsewhere. */
async function desk(operator: Operator): Promise<number> {
  if (operator.output.json || !hasTerminal()) return list(operator)
  refuseInsideRun(operator)
  const waiting = async () => (await operator.api.call('approvals.list', { limit: LIMITS.page })).items
  const left = new Set<string>()
  const seen = new Set<number>()
  for (;;) {
    // Read again each time: what somebody else has decided meanwhile is not asked for.
    const open = (await waiting()).filter(({ id }) => !left.has(id))
    const [approval] = open
    if (approval === undefined) break
    left.add(approval.id)
    introduce(open, approval.step, seen)
    process.stderr.write(`\n${describeAsked(approval)}\n\n`)
    if ((await decideHere(operator, approval, open.length - 1)) === 'quit') break
  }
  const still = (await waiting()).length
  process.stdout.write(still === 0 ? 'nothing waits for a decision\n' : `still waiting: ${still}\n`)
  return EXIT.done
}

/** What a model asked for in one reply is seen together before the first of it is decided. */
function introduce(open: readonly ApprovalView[], reply: number, seen: Set<number>): void {
  const together = open.filter(({ step }) => step === reply)
  if (together.length > 1 && !seen.has(reply)) process.stderr.write(`\n${overview(together)}\n`)
  seen.add(reply)
}

function overview(together: readonly ApprovalView[]): string {
  const lines = together.map(({ id, tool, input }) => [id, tool, brief(input)])
  const title = `${together.length} calls of one reply wait; each is decided by itself:`
  return [title, table(['APPROVAL', 'TOOL', 'INPUT'], lines)].join('\n')
}

const KEYS: ReadonlyMap<string, Kind | 'always' | 'quit' | 'later'> = new Map(
  Object.entries({
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
  } as const),
)

async function decideHere(operator: Operator, { id, digest }: ApprovalView, more: number): Promise<'quit' | 'next'> {
  for (;;) {
    const line = await askLine(`[a]pprove [s]kip [d]eny always [n]ext [q]uit${more === 0 ? '' : ` (${more} more)`}: `)
    const meant = line === undefined ? 'quit' : KEYS.get(line)
    if (meant === undefined) continue
    if (meant === 'quit') return 'quit'
    if (meant === 'later') return 'next'
    try {
      if (meant === 'always') await always(operator, id, { digest })
      else await decide(operator, id, meant, { digest })
      return 'next'
    } catch (error) {
      // What cannot be done is said, and the question stays.
      if (!(error instanceof HoldfastError)) throw error
      operator.output.note(visible(`${error.message}${error.remedy === undefined ? '' : `; ${error.remedy}`}`))
      if (error.code === 'approvals/too-late') return 'next'
    }
  }
}
