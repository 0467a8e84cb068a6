import { actionsOfThread } from '../../actions/action.ts'
import type { Action } from '../../actions/action.ts'
import { answersOf } from '../../actions/edit.ts'
import type { PolicyRule } from '../../actions/policy.ts'
import type { ThreadId } from '../../base/ids.ts'
import type { Asked, AskModel } from '../../loop/ports.ts'
import { NO_USAGE } from '../../loop/usage.ts'
import { WEBHOOK_AGENT } from '../../schedule/dispatch.ts'
import type { WebhookOrder } from '../../schedule/dispatch.ts'
import type { Store } from '../../store/store.ts'
import type { Transition } from '../../store/transition.ts'
import { messagesOf } from '../../threads/message.ts'
import { WEBHOOK_TOOL } from '../../tools/built-in-names.ts'
import { REFUSED, webhookTool } from '../../tools/webhook.ts'
import type { WebhookInput, WebhookOptions } from '../../tools/webhook.ts'
import type { OpenAgent } from './execute-agent.ts'

export interface WebhookAgentOptions {
  readonly store: Store
  readonly policy: readonly PolicyRule[]
  readonly http: WebhookOptions
  readonly approvalMs?: number
}

/**
 * Carries out the webhooks of schedules: each firing is a thread whose one reply is one call. There is no model, and all the
 * rest is as with any agent: the decision, the intent on disk, the doubt.
 */
export function webhookAgent({ store, policy, http, approvalMs }: WebhookAgentOptions): OpenAgent {
  return {
    name: WEBHOOK_AGENT,
    system: '',
    policy,
    tools: new Map([[WEBHOOK_TOOL, webhookTool(http)]]),
    ask: askNobody(store),
    doubts: 'park',
    ...(approvalMs === undefined ? {} : { approvalMs }),
  }
}

const askNobody =
  (store: Store): AskModel =>
  async ({ threadId }) => {
    const { order, action } = threadId === undefined ? NOTHING : await store.read(readFiring, threadId)
    if (action !== undefined) return endOf(action)
    return order === undefined ? failed('validation', 'there is nothing to send in this thread') : callOf(order)
  }

interface Firing {
  readonly order?: WebhookInput
  readonly action?: Action
}

const NOTHING: Firing = {}

function* readFiring(threadId: ThreadId): Transition<Firing> {
  const message = (yield* messagesOf.single(threadId)).find(({ body }) => body['webhook'] !== undefined)
  const action = answersOf(yield* actionsOfThread.single(threadId)).at(-1)?.action
  return {
    ...(message === undefined ? {} : { order: inputOf(message.body) }),
    ...(action === undefined ? {} : { action }),
  }
}

/** As `dispatch` wrote it. */
function inputOf(body: Readonly<Record<string, unknown>>): WebhookInput {
  const {
    webhook,
    schedule,
    dueAt,
    attempt = 1,
  } = body as {
    readonly webhook: WebhookOrder
    readonly schedule: string
    readonly dueAt: string
    readonly attempt?: number
  }
  const { url, method, body: data, occurrence, madeBy, fromRun } = webhook
  const told = { schedule, occurrence, dueAt, attempt, ...(data === undefined ? {} : { data }) }
  return { url, method, body: told, madeBy, mayBePrivate: !fromRun }
}

const callOf = (input: WebhookInput): Asked => ({
  kind: 'replied',
  reply: {
    text: '',
    toolCalls: [{ id: 'call', tool: WEBHOOK_TOOL, input }],
    usage: NO_USAGE,
    finish: 'tool-calls',
  },
  spent: NO_USAGE,
})

/** What became of the call is what becomes of the run, and by that of the occurrence. */
function endOf({ state, result, error, givenUp, settledBy, tries }: Action): Asked {
  if (state === 'done') return said(result)
  const words = error ?? state
  if (state === 'in_doubt') return failed('tool', `nobody knows whether it happened: ${givenUp ?? words}`)
  // By its tool: it was tried and certainly did nothing, so it may be tried again. A no of a person or a rule stays a no.
  const mayBeRetried = state === 'failed' && tries > 0 && settledBy === 'its tool' && !words.startsWith(REFUSED)
  return failed(mayBeRetried ? 'tool' : 'validation', words)
}

function said(result: unknown): Asked {
  const status = (result as { status?: unknown } | null)?.status
  const text = typeof status === 'number' ? `It answered with status ${status}.` : 'It happened.'
  return { kind: 'replied', reply: { text, toolCalls: [], usage: NO_USAGE, finish: 'stop' }, spent: NO_USAGE }
}

const failed = (code: 'tool' | 'validation', error: string): Asked => ({ kind: 'failed', code, error, spent: NO_USAGE })
