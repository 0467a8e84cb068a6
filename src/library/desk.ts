import { approveAlways } from '../actions/always.ts'
import { decideApproval } from '../actions/decide.ts'
import type { Answer } from '../actions/decide.ts'
import {
  askedByPrefix,
  askedMatters,
  doubtfulByPrefix,
  doubtfulMatters,
  viewAsked,
  viewDoubt,
} from '../actions/desk.ts'
import type { AskedMatter, Matter } from '../actions/desk.ts'
import { resolveDoubt } from '../actions/doubt.ts'
import type { Resolution } from '../actions/doubt.ts'
import { editApproval } from '../actions/edit.ts'
import type { PolicyRule } from '../actions/policy.ts'
import { alwaysRule, insideRun, isSameRule, resolved, taken } from '../actions/verdict.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { thisUser } from '../base/user.ts'
import { runAround } from '../define/inside.ts'
import { editedCall } from '../loop/edit-call.ts'
import { thisPlace } from '../processes/identity.ts'
import type { Runtime } from '../runtime.ts'

/** A request for a person's decision; `shown` are the exact bytes that it covers, `digest` is theirs. */
export type ApprovalRequest = ReturnType<typeof viewAsked>

/** A write that was cut off: it may or may not have happened. */
export type Doubt = ReturnType<typeof viewDoubt>

/** What the person saw: an answer covers exactly that. */
type Seen = Pick<ApprovalRequest, 'id' | 'digest'>

/** For the record. Without `by`, whoever runs this process. */
interface Said {
  readonly by?: string
  readonly note?: string
}

/** What waits for a yes or a no. */
export interface Approvals {
  /** Oldest first, a page of them. */
  list(): Promise<ApprovalRequest[]>
  get(id: string): Promise<ApprovalRequest>
  approve(request: Seen, said?: Said): Promise<ApprovalRequest>
  /** Not this one; the agent goes on without it. */
  skip(request: Seen, said?: Said): Promise<ApprovalRequest>
  deny(request: Seen, said?: Said): Promise<ApprovalRequest>
  /** Changes its arguments. What it becomes is returned, and asks for a yes of its own. */
  edit(request: Seen, edit: Said & { readonly input: unknown }): Promise<ApprovalRequest>
  /** The rule that `always` makes: to be shown before it is made. Rejects where none says exactly what it allows. */
  ruleFor(request: Pick<Seen, 'id'>): Promise<PolicyRule>
  /** Yes, and from now on to exactly this call: by the rule that was shown. */
  always(request: Seen, rule: PolicyRule, said?: Said): Promise<ApprovalRequest & { readonly ruleId: string }>
}

/** What somebody says became of a write. `run-again`: it did not happen, and is to be done now. */
export type DoubtResolution = { readonly by?: string; readonly why?: string } & (
  | { readonly resolution: 'happened'; readonly result?: unknown }
  | { readonly resolution: 'did-not-happen' | 'give-up' }
  /** `deadHost`: who had begun it on that machine, which cannot be reached, is dead. */
  | { readonly resolution: 'run-again'; readonly deadHost?: string }
)

export interface Doubts {
  /** Oldest first, a page of them. */
  list(): Promise<Doubt[]>
  get(id: string): Promise<Doubt>
  /** Its run, if it waits for that, goes on at once. */
  resolve(id: string, resolution: DoubtResolution): Promise<Doubt>
}

const VIA = 'library'

const notFound = (noun: 'approval' | 'doubt', id: string) =>
  new HoldfastError(`not-found/${noun}`, `there is no ${noun} "${id}"`, { remedy: `runtime.${noun}s.list() has them` })

/** A guard-rail, as on the command line: neither a tool of this process nor a process that a run started decides anything. */
function refuseInside(): void {
  const own = runAround()
  if (own !== undefined) throw insideRun(`this is called by a tool of ${own}`)
  const run = process.env['HOLDFAST_RUN']
  if (run !== undefined && run !== '') throw insideRun(`this process was started by ${run}`)
}

export function openApprovals(runtime: Runtime): Approvals {
  const { store } = runtime
  const find = async (id: string): Promise<AskedMatter> => {
    const found = (await store.read(askedByPrefix, id)).find(({ approval }) => approval.id === id)
    if (found === undefined) throw notFound('approval', id)
    return found
  }
  /** The matter, and the answer as it is recorded. */
  const answering = async ({ id, digest }: Seen, { by = thisUser(), note }: Said = {}) => {
    refuseInside()
    return { matter: await find(id), answer: { by, via: VIA, digest, ...(note === undefined ? {} : { note }) } }
  }
  const look = (id: string) => `runtime.approvals.get('${id}')`
  const decide = (kind: Answer['kind']) => async (request: Seen, said?: Said) => {
    const { matter, answer } = await answering(request, said)
    const decided = await store.apply(decideApproval, request.id, { ...answer, kind })
    return viewAsked({ ...matter, ...taken(matter.approval, decided, look(request.id)) })
  }
  return {
    list: async () => (await store.read(askedMatters, LIMITS.page)).map(viewAsked),
    get: async (id) => viewAsked(await find(id)),
    approve: decide('approve'),
    skip: decide('skip'),
    deny: decide('deny'),
    async edit(request, { input, ...said }) {
      const { matter, answer } = await answering(request, said)
      const tool = await runtime.toolOf(matter.run, matter.action.tool)
      const action = editedCall(matter, tool, input, runtime.random)
      const expiry = runtime.config?.approvalMs === undefined ? {} : { expiresInMs: runtime.config.approvalMs }
      const edited = await store.apply(editApproval, request.id, { ...answer, action, ...expiry })
      return viewAsked({ ...matter, ...taken(matter.approval, edited, look(request.id)) })
    },
    ruleFor: async ({ id }) => alwaysRule(await find(id), '', 'runtime.approvals.approve').rule,
    async always(request, rule, said) {
      const { matter, answer } = await answering(request, said)
      const made = alwaysRule(matter, answer.by, 'runtime.approvals.approve')
      if (!isSameRule(rule, made.rule)) throw otherRule()
      const decided = await store.apply(approveAlways, request.id, answer, made)
      return { ...viewAsked({ ...matter, ...taken(matter.approval, decided, look(request.id)) }), ruleId: made.id }
    },
  }
}

const otherRule = () =>
  new HoldfastError('approvals/other-rule', 'that is not the rule that this makes; nothing was decided', {
    remedy: 'show the person what runtime.approvals.ruleFor() gives, and pass on exactly that',
  })

const RESOLUTIONS: readonly string[] = [
  'happened',
  'did-not-happen',
  'run-again',
  'give-up',
] satisfies Resolution['kind'][]

export function openDoubts(runtime: Runtime): Doubts {
  const { store } = runtime
  const find = async (id: string): Promise<Matter> => {
    const found = (await store.read(doubtfulByPrefix, id)).find(({ action }) => action.id === id)
    if (found === undefined) throw notFound('doubt', id)
    return found
  }
  return {
    list: async () => (await store.read(doubtfulMatters, LIMITS.page)).map(viewDoubt),
    get: async (id) => viewDoubt(await find(id)),
    async resolve(id, { by = thisUser(), resolution: kind, ...said }) {
      refuseInside()
      if (!RESOLUTIONS.includes(kind))
        throw new HoldfastError('usage/resolve', `"${kind}" says nothing about what became of it`, {
          remedy: `it is one of ${RESOLUTIONS.join(', ')}`,
        })
      if ('deadHost' in said && said.deadHost === thisPlace().host)
        throw new HoldfastError('usage/resolve', 'that is this machine, where processes are looked at', {
          remedy: 'leave deadHost out',
        })
      const matter = await find(id)
      const resolution = { kind, by, ...said } as Resolution
      return viewDoubt({
        ...matter,
        action: resolved(id, await store.apply(resolveDoubt, matter.action.id, resolution)),
      })
    },
  }
}
