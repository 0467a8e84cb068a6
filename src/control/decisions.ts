import { approveAlways } from '../actions/always.ts'
import { decideApproval } from '../actions/decide.ts'
import type { Decided } from '../actions/decide.ts'
import { answeredMatters, askedMatters, doubtfulMatters, viewAsked, viewDoubt } from '../actions/desk.ts'
import type { AskedMatter } from '../actions/desk.ts'
import { resolveDoubt } from '../actions/doubt.ts'
import type { Resolution } from '../actions/doubt.ts'
import { editApproval } from '../actions/edit.ts'
import { describeRule } from '../actions/policy-check.ts'
import { narrowestRule } from '../actions/rule.ts'
import { alwaysRule, resolved, taken } from '../actions/verdict.ts'
import type { Answer, Ask } from '../api/routes.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { withHidden } from '../base/visible.ts'
import { editedCall } from '../loop/edit-call.ts'
import { thisPlace } from '../processes/identity.ts'
import { resumeLine, sessionAway } from '../sessions/away.ts'
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

/** With what `always` would mean, and whether it can be changed, for whoever is about to say it. */
export async function showAsked(desk: Desk, { approval }: Ask<'approvals.show'>): Promise<Answer<'approvals.show'>> {
  const matter = await theApproval(desk.runtime.store, approval)
  const view = viewAsked(matter)
  if (matter.approval.state !== 'pending') return view
  const { action, run } = matter
  const narrow = narrowestRule(action, run.agent)
  const editable = await isEditable(desk, matter)
  return { ...view, editable, always: 'refused' in narrow ? narrow : { rule: describeRule(narrow.rule) } }
}

/** The tools of a function, of a client and of a program that brings its agents are known to it alone. */
async function isEditable({ runtime }: Desk, { action, run }: AskedMatter): Promise<boolean> {
  if (run.request.kind !== 'agent' || run.input !== null || !runtime.agents.includes(run.agent)) return false
  // An agent that cannot be opened here is no reason not to show what it asks.
  return runtime.toolOf(run, action.tool).then(
    (tool) => tool !== undefined,
    () => false,
  )
}

const lookAt = (id: string) => `\`holdfast approvals show ${id}\``

/** Bound to the digest: a program that has not looked at what would run has nothing to decide. */
export async function decide(desk: Desk, ask: Ask<'approvals.decide'>): Promise<Answer<'approvals.decide'>> {
  const { approval: given, decision: kind, digest, note } = ask
  const matter = await theApproval(desk.runtime.store, given)
  const answer = { kind, digest, ...desk.decider(ask.by), ...filled({ note }) }
  return viewDecided(desk, matter, await desk.apply(decideApproval, matter.approval.id, answer))
}

async function viewDecided(desk: Desk, matter: AskedMatter, decided: Decided): Promise<Answer<'approvals.decide'>> {
  const { approval, run } = matter
  const view = viewAsked({ ...matter, ...taken(approval, decided, lookAt(approval.id)) })
  const session = run.request.kind === 'observed' ? await desk.read(sessionAway, run.id) : undefined
  return session === undefined ? view : { ...view, resume: resumeLine(session) }
}

export async function always(desk: Desk, ask: Ask<'approvals.always'>): Promise<Answer<'approvals.always'>> {
  const { approval: given, digest, note } = ask
  const matter = await theApproval(desk.runtime.store, given)
  const { id } = matter.approval
  const who = desk.decider(ask.by)
  const rule = alwaysRule(matter, who.by, `\`holdfast approvals approve ${id}\``)
  const decided = await desk.apply(approveAlways, id, { digest, ...who, ...filled({ note }) }, rule)
  return { ...(await viewDecided(desk, matter, decided)), ruleId: rule.id, rule: describeRule(rule.rule) }
}

/** A person changes a call before it is done. What it becomes asks for a yes of its own. */
export async function edit(desk: Desk, ask: Ask<'approvals.edit'>): Promise<Answer<'approvals.edit'>> {
  const { runtime } = desk
  const matter = await theApproval(runtime.store, ask.approval)
  const { id } = matter.approval
  const tool = await runtime.toolOf(matter.run, matter.action.tool)
  const edited = await desk.apply(editApproval, id, {
    ...desk.decider(ask.by),
    digest: ask.digest,
    action: editedCall(matter, tool, withHidden(matter.action.input, ask.input), runtime.random),
    ...filled({ note: ask.note, expiresInMs: runtime.config?.approvalMs }),
  })
  const { approval, action } = taken(matter.approval, edited, lookAt(id))
  return { ...viewAsked({ ...matter, approval, action }), replaces: id }
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
  const resolution = resolutionOf(desk, ask)
  const matter = await theDoubt(desk.runtime.store, ask.doubt)
  const { id } = matter.action
  return viewDoubt({ ...matter, action: resolved(id, await desk.apply(resolveDoubt, id, resolution)) })
}

function resolutionOf(desk: Desk, ask: Ask<'doubts.resolve'>): Resolution {
  const { resolution: kind, result, why, deadHost } = ask
  const said = { by: desk.decider(ask.by).by, ...filled({ why }) }
  if (deadHost !== undefined && kind !== 'run-again') throw wrong('deadHost is for run-again')
  if (deadHost === thisPlace().host) throw wrong('that is this machine, where processes are looked at')
  if (kind === 'run-again') return { kind, ...said, ...filled({ deadHost }) }
  return kind === 'happened' && result !== undefined ? { kind, ...said, result } : { kind, ...said }
}

const wrong = (message: string) => new HoldfastError('usage/resolve', message, { remedy: 'leave it out' })
