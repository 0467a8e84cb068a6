import type { Answer } from '../../../src/api/routes.ts'

/** The answers of the HTTP API, by the names that this page uses. Types only: no schema comes into the browser. */

export type Run = Answer<'runs.list'>['items'][number]
export type RunState = Run['state']
export type WholeRun = Answer<'runs.show'>
export type Attempt = WholeRun['attempts'][number]
export type Action = Answer<'actions.show'>
export type Workspace = Answer<'workspaces.show'>
export type Statement = Answer<'runs.statement'>
export type Message = Answer<'messages.list'>['items'][number]
export type ListedThread = Answer<'threads.list'>['items'][number]
export type WholeThread = Answer<'threads.show'>
export type Branch = Answer<'threads.tree'>
export type Approval = Answer<'approvals.show'>
export type Doubt = Answer<'doubts.show'>
export type Event = Answer<'runs.events'>['items'][number]
export type Bucket = Answer<'series'>['items'][number]
export type Rule = Answer<'policy.list'>['items'][number]
export type Schedule = Answer<'schedules.list'>['items'][number]
export type Occurrence = Answer<'occurrences.list'>['items'][number]
export type Token = Answer<'tokens.list'>['items'][number]
export type Scope = Token['scopes'][number]

/** A step has the fields of its kind. */
export interface Step {
  readonly seq: number
  readonly runId: string
  readonly kind: 'user' | 'assistant' | 'summary'
  readonly at: string
  readonly text?: string
  readonly messageId?: string
  /** Who asked, where that is no message. */
  readonly from?: string
  readonly usage?: Run['usage'] | undefined
}

/** A piece of a reply that is being said. */
export interface TextPart {
  readonly runId: string
  readonly threadId: string
  readonly agent: string
  readonly reply: number
  readonly at: number
  readonly delta: string
  readonly ended?: true
}
