import type { ModelReply, ModelRequest, Tool } from '../loop/ports.ts'
import type { TokenCounts } from '../model/prices.ts'

/*
 * A loop that is not ours: it asks a model and uses tools by itself, inside of a function. This is what it is given, so that
 * what it does is recorded, and decided on, as what an agent of ours does.
 */

/** By which a run of a function gives it out. Known by name: the program may have two copies of this package. */
export const OWN_LOOP: unique symbol = Symbol.for('holdfast.own-loop')

export interface HasOwnLoop {
  readonly [OWN_LOOP]: () => Promise<OwnLoop>
}

export interface OwnLoop {
  readonly runId: string
  /** Aborted when the run is cancelled or its worker has lost it. */
  readonly signal: AbortSignal
  readonly warn: (message: string) => void
  /** Asks a model, patiently; or answers from the record. */
  ask(question: Question): Promise<Answered>
  /** Whether a call may be carried out. Does not come back while a person has to say so: then the run is parked. */
  standing(call: OwnCall, others: () => Promise<readonly OwnCall[]>): Promise<Standing>
  /** Carries a call out, once, and gives its result. Rejects with a `CallNotDone` that says what became of it. */
  perform(call: OwnCall): Promise<unknown>
}

export interface Question {
  /** By which the answer is found again: it says what is asked. */
  readonly name: string
  /** As a configuration would name it, and the account whose limits it shares. */
  readonly model: string
  readonly quota: string
  /** Whether it shows the model what is in the inbox. */
  readonly takesMessages: boolean
  readonly signal?: AbortSignal
  /** What is new in it since the model spoke last, in words: for whoever reads the record. */
  readonly asked: string
  /** All of it, with what is new in the inbox, in words: for whoever traces it. */
  readonly conversation: (messages: readonly string[]) => Conversation
  /** One try. It is given what is new in the inbox. */
  readonly ask: (messages: readonly string[], signal: AbortSignal) => Promise<Said>
  /** Something of the answer has been passed on, so that it cannot be asked for anew. */
  readonly isBegun: () => boolean
  readonly errors: KeptErrors
}

/** How the loop knows the errors of a question that came to nothing, when it comes to that again. */
export interface KeptErrors {
  /** As JSON. */
  readonly keep: (error: unknown) => unknown
  readonly revive: (kept: unknown) => Error
}

export type Conversation = Pick<ModelRequest, 'system' | 'messages'>

/** With its words and its calls, as a reply to a loop of ours has them. */
export interface Said extends Pick<ModelReply, 'text' | 'toolCalls' | 'finish'> {
  /** As JSON. */
  readonly reply: unknown
  readonly tokens: TokenCounts
}

export interface Answered {
  readonly reply: unknown
  /** What was new in the inbox when it was asked. */
  readonly messages: readonly string[]
  /** The name of its record. */
  readonly step: string
}

export interface OwnCall {
  readonly callId: string
  /** The record of the reply that wants it. */
  readonly step: string
  readonly tool: Tool
  readonly input: unknown
  /** What the program itself says to it. A rule that denies comes first, one that allows does not replace a question. */
  readonly said?: () => Promise<ProgramSays | undefined>
  /** When nobody knows whether it happened: wait for a person (the default), or go on without knowing. */
  readonly doubt?: 'park' | 'tell'
}

export interface ProgramSays {
  readonly kind: 'allow' | 'ask' | 'deny'
  readonly why: string
}

export type Standing =
  | { readonly kind: 'allowed'; readonly by: 'rule' | 'program' | 'person' }
  /** By a rule, by the program, by a person, or because nobody answered. */
  | { readonly kind: 'denied'; readonly by: 'rule' | 'program' | 'person'; readonly why: string }

/** What became of a call that has no result, in words for the model. */
export class CallNotDone extends Error {
  readonly code: string
  constructor(state: 'failed' | 'denied' | 'unknown', why: string) {
    super(`${state}: ${why}`)
    this.name = 'CallNotDone'
    this.code = `call/${state}`
  }

  /** What a model is told: the sentence, without the name of a class. */
  override toString(): string {
    return this.message
  }
}
