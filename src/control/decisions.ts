import { approveAlways } from '../actions/always.ts'
import { decideApproval } from '../actions/decide.ts'
import type { Decided } from '../actions/decide.ts'
import { answeredMatters, askedMatters, doubtfulMatters, viewAsked, viewDoubt } from '../actions/desk.ts'
import type { AskedMatter, Matter } from '../actions/desk.ts'
import { resolveDoubt } from '../actions/doubt.ts'
import type { Resolution, Resolved } from '../actions/doubt.ts'
import { editApproval } from '../actions/edit.ts'
import type { Edited } from '../actions/edit.ts'
import { describeRule } from '../actions/policy-check.ts'
import { narrowestRule } from '../actions/rule.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { newActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { checkEdit } from '../loop/reply.ts'
import type { CheckedEdit } from '../loop/reply.ts'
import type { Desk } from './desk.ts'
import { theApproval, theDoubt } from './find.ts'
import { filled, paged } from './page.ts'

/** What needs a person, and their answers. */

export async function listAsked(desk: Desk, ask: Ask<'approvals.list'>): Promise<Answer<'approvals.list'>> {
  const { limit = LIMITS.page, after, state = 'pending' } = ask
  if (after !== undefined) await theApproval(desk.runtime.store, after)
  const found =
    state === 'pending'
      ? await desk.read(askedMatters, limit, after)
      : await desk.read(answeredMatters, state, limit, after)
  return paged(found.map(viewAsked), limit)
}

/** With what `always` would mean, for whoever is about to say it. */
export async function showAsked(desk: Desk, { approval }: Ask<'approvals.show'>): Promise<Answer<'approvals.show'>> {
  const matter = await theApproval(desk.runtime.store, approval)
  const view = viewAsked(matter)
  if (matter.approval.state !== 'pending') return view
  const narrow = narrowestRule(matter.action, matter.run.agent)
  return { ...view, always: 'refused' in narrow ? narrow : { rule: describeRule(narrow.rule) } }
}

/** Bound to the digest: a program that has not looked at what would run has nothing to decide. */
export async function decide(desk: Desk, ask: Ask<'approvals.decide'>): Promise<Answer<'approvals.decide'>> {
  const { approval: given, decision: kind, digest, note } = ask
  const matter = await theApproval(desk.runtime.store, given)
  const { by, via } = desk.who
  const answer = { kind, digest, by, via, ...filled({ note }) }
  return taken(matter, await desk.apply(decideApproval, matter.approval.id, answer))
}

/** A lost race is said with who won it. */
function taken(matter: AskedMatter, decided: Decided) {
  if (decided.kind === 'decided') return viewAsked({ ...matter, ...decided })
  const { approval } = matter
  if (decided.kind === 'changed') throw changed(approval.id)
  throw tooLate(decided.kind === 'unknown' ? approval : decided.approval)
}

const changed = (id: string) =>
  new HoldfastError('approvals/changed', `${id} is not what has that digest`, {
    remedy: `\`holdfast approvals show ${id}\` shows what would run`,
  })

function tooLate({ id, state, decidedBy }: AskedMatter['approval']): HoldfastError {
  const by = decidedBy === null ? '' : `, by ${decidedBy}`
  const how = state === 'pending' ? 'has expired' : `has been decided already: ${state}${by}`
  return new HoldfastError('approvals/too-late', `${id} ${how}`, { remedy: 'nothing was changed' })
}

export async function always(desk: Desk, ask: Ask<'approvals.always'>): Promise<Answer<'approvals.always'>> {
  const { approval: given, digest, note } = ask
  const matter = await theApproval(desk.runtime.store, given)
  const { action, run, approval } = matter
  const narrow = narrowestRule(action, run.agent)
  if ('refused' in narrow) throw noRule(approval.id, narrow.refused)
  const { by, via } = desk.who
  const id = `rule_${approval.id.slice(approval.id.indexOf('_') + 1)}`
  const rule = { id, rule: narrow.rule, by, from: action.id }
  const answer = { digest, by, via, ...filled({ note }) }
  const decided = taken(matter, await desk.apply(approveAlways, approval.id, answer, rule))
  return { ...decided, ruleId: id, rule: describeRule(narrow.rule) }
}

export const noRule = (id: string, why: string) =>
  new HoldfastError('approvals/no-rule', `there can be no rule for this: ${why}`, {
    remedy: `\`holdfast approvals approve ${id}\` allows it this once`,
  })

/** A person changes a call before it is done. What it becomes asks for a yes of its own. */
export async function edit(desk: Desk, ask: Ask<'approvals.edit'>): Promise<Answer<'approvals.edit'>> {
  const { runtime } = desk
  const matter = await theApproval(runtime.store, ask.approval)
  const checked = checkedInput(desk, matter, ask.input)
  const { by, via } = desk.who
  const { approvalMs } = runtime.config ?? {}
  const edited = await desk.apply(editApproval, matter.approval.id, {
    by,
    via,
    digest: ask.digest,
    action: { id: newActionId(runtime.random), mark: runtime.random.hex(15), ...checked },
    ...filled({ note: ask.note, expiresInMs: approvalMs }),
  })
  const { approval, action } = accepted(matter, edited)
  return { ...viewAsked({ ...matter, approval, action }), replaces: matter.approval.id }
}

/** By the tool itself, which only the configuration knows. */
function checkedInput({ runtime }: Desk, { action, run }: AskedMatter, input: unknown): CheckedEdit {
  const tool = runtime.toolsOf(run.agent)?.get(action.tool)
  if (tool === undefined) {
    throw new HoldfastError('approvals/no-tool', `the tool ${action.tool} of ${run.agent} is not known here`, {
      remedy:
        'use the configuration of the daemon (--config); tools of MCP servers cannot be changed so: skip the call',
    })
  }
  const checked = checkEdit(tool, input)
  if ('wrong' in checked) {
    throw new HoldfastError('usage/input', `${action.tool} does not take that: ${checked.wrong}`, {
      remedy: 'nothing was changed',
    })
  }
  return checked
}

function accepted({ approval }: AskedMatter, edited: Edited): Extract<Edited, { kind: 'edited' }> {
  if (edited.kind === 'edited') return edited
  if (edited.kind === 'changed') throw changed(approval.id)
  throw tooLate(edited.kind === 'unknown' ? approval : edited.approval)
}

export async function listDoubts(desk: Desk, ask: Ask<'doubts.list'>): Promise<Answer<'doubts.list'>> {
  const { limit = LIMITS.page, after } = ask
  if (after !== undefined) await theDoubt(desk.runtime.store, after)
  return paged((await desk.read(doubtfulMatters, limit, after)).map(viewDoubt), limit)
}

export async function showDoubt(desk: Desk, { doubt }: Ask<'doubts.show'>): Promise<Answer<'doubts.show'>> {
  return viewDoubt(await theDoubt(desk.runtime.store, doubt))
}

export async function resolve(desk: Desk, ask: Ask<'doubts.resolve'>): Promise<Answer<'doubts.resolve'>> {
  const { doubt, resolution: kind, result, why } = ask
  const said = { by: desk.who.by, ...filled({ why }) }
  const resolution: Resolution =
    kind === 'happened' && result !== undefined ? { kind, ...said, result } : { kind, ...said }
  const matter = await theDoubt(desk.runtime.store, doubt)
  const { id } = matter.action
  return viewDoubt({ ...matter, action: settled(id, await desk.apply(resolveDoubt, id, resolution)) })
}

function settled(id: string, resolved: Resolved): Matter['action'] {
  if (resolved.kind === 'resolved') return resolved.action
  if (resolved.kind === 'run-ended')
    throw new HoldfastError('doubts/run-ended', `the run of ${id} has ended: nobody is there to do it again`, {
      remedy: 'say --happened, --did-not-happen or --give-up, for the record',
    })
  const how = resolved.kind === 'unknown' ? 'is gone' : `is not in doubt any more: ${stateOf(resolved.action)}`
  throw new HoldfastError('doubts/not-in-doubt', `${id} ${how}`, { remedy: 'nothing was changed' })
}

const stateOf = ({ state, settledBy, givenUp }: Matter['action']) => {
  if (givenUp !== null) return `given up by ${givenUp}`
  return settledBy === null ? state : `${state}, settled by ${settledBy}`
}
