import type { OnceWindow } from '../actions/window.ts'
import type { Clock, Instant } from '../base/clock.ts'
import type { ActionId, RunId, ThreadId } from '../base/ids.ts'
import type { FailureCode } from '../runs/run.ts'

/**
 * What the loop needs of the world outside: a model to ask and tools to use. Adapters implement these; the loop knows no
 * provider and no process.
 */

/** One entry of a conversation as a model is shown it. */
export type ModelMessage =
  | { readonly role: 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly toolCalls: readonly ToolCall[] }
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly tool: string
      readonly text: string
      readonly failed: boolean
    }

export interface ToolCall {
  /** The model's own name for this call; results refer to it. */
  readonly id: string
  readonly tool: string
  readonly input: unknown
}

/** JSON Schema, as models and MCP want it. */
export type JsonSchema = Readonly<Record<string, unknown>>

export interface ToolDescription {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
}

export interface ModelRequest {
  readonly system: string
  readonly messages: readonly ModelMessage[]
  /** In a stable order, for prompt caches. */
  readonly tools: readonly ToolDescription[]
  /** How many replies this thread has had; a scripted model answers with the next one. Side calls do not count. */
  readonly replies: number
  /** `side`: compaction, titles; retried like any other, but no turn of the conversation. */
  readonly purpose: 'turn' | 'side'
  /** Whose conversation it is: two threads may have said the same so far. */
  readonly threadId?: ThreadId
}

export interface ModelUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicrousd: number
}

/** In US dollars for a million tokens. What is not said of a cache costs as input does. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
}

export interface ModelReply {
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
  readonly usage: ModelUsage
  /** `length`: cut off by the model's own limit. `refusal`: it will not answer this. */
  readonly finish: 'stop' | 'tool-calls' | 'length' | 'refusal'
}

export interface ModelCallOptions {
  readonly signal: AbortSignal
  readonly onText?: (delta: string) => void
  /** A try failed and another follows: what it had streamed is void. */
  readonly onRetry?: (failed: { readonly error: Error; readonly waitMs: number }) => void
}

export interface LanguageModel {
  /** As in the configuration: `scripted:./clerk.json`, `anthropic/claude-sonnet-5`. */
  readonly id: string
  /** The account whose limits it shares with others. */
  readonly quota: string
  /** One try. Rejects with a ModelError, or with the signal's reason. */
  generate(request: ModelRequest, options: ModelCallOptions): Promise<ModelReply>
}

/** What asking a model, patiently, came to. `spent` is the usage of every try, failed ones included. */
export type Asked = { readonly spent: ModelUsage } & (
  | { readonly kind: 'replied'; readonly reply: ModelReply }
  /** Longer than is worth keeping a process for. */
  | { readonly kind: 'park'; readonly until: Instant; readonly reason: string }
  | {
      readonly kind: 'failed'
      readonly code: Extract<FailureCode, 'auth' | 'model' | 'tool' | 'validation'>
      readonly error: string
      /** The provider says that the conversation does not fit into the model's window. */
      readonly tooLong?: boolean
    }
  | { readonly kind: 'cancelled' }
)

export type AskModel = (request: ModelRequest, options: ModelCallOptions) => Promise<Asked>

/** What a tool knows of the action that it performs. */
export interface ToolContext {
  /** Ends with the turn's timeout and the user's cancel. There is no other way to write a tool. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The idempotency key: the same for every try of this action. */
  readonly key: ActionId
  readonly threadId: ThreadId
  readonly runId: RunId
  /** A folder for what must outlive this process, and the mark for its processes; of this action alone. */
  readonly folder: string
  readonly mark: string
  /** Of the claim under which it is performed, or looked after: who has a higher one is the newer owner of its processes. */
  readonly fence: number
  readonly deadline: Instant
}

/** What became of an action, as far as its tool can know. */
export type ToolOutcome =
  | { readonly kind: 'done'; readonly result: unknown }
  /** It certainly did not happen. `unbegun`: it was not even tried, so an earlier try of it is as unknown as before. */
  | {
      readonly kind: 'failed'
      readonly error: string
      readonly unbegun?: true
      /** It met a limit of the run: that ends too. */
      readonly endsRun?: true
    }
  /**
   * It may or may not have happened. `over`: proven that nothing of this try can happen any more; false: something of it may
   * well go on. A tool that honours its key by looking first does it twice beside a try that goes on.
   */
  | { readonly kind: 'in-doubt'; readonly error: string; readonly over?: boolean }

export interface Tool extends ToolDescription {
  readonly effect: 'read' | 'write'
  /** Of one call, where that depends on its input: a tool that lists and changes. Policy, `once` and doubt follow it. */
  readonly effectOf?: (input: unknown) => 'read' | 'write'
  /** Who has said yes to exactly this call already, outside of this run. Any rule that matches comes first. */
  readonly agreedBy?: (input: unknown) => { readonly by: string; readonly via: 'schedule' }
  /** `once`: an identical call in a run is the same action and gets its result. */
  readonly repeat: 'once' | 'each'
  /** Widens `once` beyond the run: the identical call of this thread or agent, so long after it began. */
  readonly once?: OnceWindow
  readonly timeoutMs: number
  /** What else tells two tools of one name apart: the command that it runs. */
  readonly definition?: unknown
  /** It honours the key itself: performing it again with the same key has no second effect. */
  readonly idempotent: boolean
  /** The arguments that make two calls the same action; never prose. */
  readonly identity: (input: unknown) => unknown
  /** The input as the tool wants it, or what is wrong with it in words for the model. */
  readonly validate: (input: unknown) => { readonly input: unknown } | { readonly error: string }
  readonly perform: (input: unknown, context: ToolContext) => Promise<ToolOutcome>
  /**
   * What became of an action that had started when its worker died. Waits for what still runs. `never-started`: proven
   * not to have begun, and it never will. Absent: nobody can say.
   */
  readonly recover?: (context: ToolContext) => Promise<ToolOutcome | { readonly kind: 'never-started' }>
  /** Whether an earlier try of it, by its key, goes on in this very process, where nobody can end it. */
  readonly goesOn?: (key: ActionId) => Promise<boolean>
  /** Asks the world whether the action happened. */
  readonly probe?: (input: unknown, context: ToolContext) => Promise<ToolOutcome | { readonly kind: 'unknown' }>
}
