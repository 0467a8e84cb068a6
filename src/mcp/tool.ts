import { digestOf } from '../base/canonical-json.ts'
import type { Randomness, RunId, ThreadId } from '../base/ids.ts'
import type { Clock } from '../base/clock.ts'
import type { PolicyRule } from '../actions/policy.ts'
import type { JsonSchema } from '../loop/ports.ts'
import type { Store } from '../store/store.ts'
import type { Caller } from './caller.ts'
import type { Handed } from './handed.ts'
import { SERVER_LIMITS } from './limits.ts'

/** What the tools work with. */
export interface Desk {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  /** The agents that may be started. */
  readonly agents: readonly string[]
  readonly backlog: number
  /** Undefined: nobody knows the rules of the configuration. */
  readonly policy?: readonly PolicyRule[]
  readonly approvalMs: number
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
  /** Who this process belongs to, looked up at each call: a client may begin another session. */
  readonly self: () => Promise<Caller>
  /** A thread by its id or a prefix that only it has. */
  readonly threadNamed: (given: string) => Promise<Caller['thread']>
  /** Gives back what was taken by processes that are gone. */
  readonly giveBackLost: () => Promise<void>
  /** This process, for what is taken in its name. */
  readonly identity: unknown
  /** What was handed out and not acknowledged yet. */
  readonly handed: Handed
}

/** One call, as far as a tool looks at it. */
export interface Call {
  readonly caller: Caller
  /** The caller's own name for this request: the same key is the same request. Undefined: each call is a new one. */
  readonly key?: string
  readonly signal: AbortSignal
  /** What the client kept for us since the round before. */
  readonly waited?: Waited
  /** Whether the client comes back by itself; one of an older protocol does not. */
  readonly comesBack: boolean
}

/** A wait, as its client keeps it between two rounds: signed, not secret. */
export interface Waited {
  readonly tool: string
  readonly thread: ThreadId
  /** The request itself: a delivery, or a question to a person. */
  readonly id: string
  /** Until when it is waited, by the wall clock. */
  readonly until: number
}

export type Answer =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: string }
  /** Not yet: the client is to come back with this. */
  | { readonly kind: 'wait'; readonly waited: Waited }

/** Hints for clients, in the protocol's words. All four are said: what is not said counts as the worst. */
export interface Hints {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export interface ServedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly hints: Hints
  readonly call: (input: never, call: Call) => Promise<Answer>
}

export const done = (value: unknown): Answer => ({ kind: 'done', value })
export const failed = (error: string): Answer => ({ kind: 'failed', error })

export const LOOKS: Hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
/** Adds something, each time it is called. */
export const ADDS: Hints = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false }

export const KEY = {
  type: 'string',
  minLength: 1,
  maxLength: SERVER_LIMITS.keyLength,
  description: 'Your own name for this request: called again with the same key, it is the same request and done once.',
}

export const objectOf = (properties: object, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

/** The number of a request: all ids of what it makes come from it, so it makes them once. */
const numberOf = (tool: string, threadId: ThreadId, key: string): string => digestOf([tool, threadId, key]).slice(0, 32)

export const numberFor = ({ random }: Desk, tool: string, { caller, key }: Call): string =>
  key === undefined ? random.id() : numberOf(tool, caller.thread.id, key)

export const runIdOf = ({ run }: Caller): RunId | null => run?.id ?? null
