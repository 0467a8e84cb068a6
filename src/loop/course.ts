import type { Action } from '../actions/action.ts'
import type { Instant } from '../base/clock.ts'
import type { Randomness } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import type { Claim } from '../runs/claim.ts'
import { keepLateReply } from '../runs/finish.ts'
import type { LateReply, Outcome } from '../runs/finish.ts'
import type { ActPorts } from './act.ts'
import { keepUntilStored } from './keep.ts'
import { DEFAULT_LIMITS, inWords } from './limits.ts'
import type { RunLimits, Spent } from './limits.ts'
import type { AskModel, ModelUsage, ToolCall, ToolDescription } from './ports.ts'
import type { Session } from './session.ts'

export interface LoopPorts extends ActPorts {
  readonly random: Randomness
  readonly ask: AskModel
  readonly system: string
  /** A write that is cut off: `park` waits for evidence or a person, `tell` lets the model go on without knowing. */
  readonly doubts?: 'park' | 'tell'
  /** How long a person has to answer. */
  readonly approvalMs?: number
  readonly emit: (event: LoopEvent) => void
  /** What a run may spend; the rest is as everywhere. */
  readonly limits?: Partial<RunLimits>
  /** The model's window. */
  readonly contextTokens?: number
  /** Called before the run waits for a person or for its children: any worker may go on with it, perhaps much later. */
  readonly aboutToWait?: () => Promise<void>
}

/** What whoever watches a run hears of it. */
export type LoopEvent =
  | { readonly kind: 'text'; readonly delta: string }
  /** Its call failed and is made again: what was heard of it so far is void. */
  | { readonly kind: 'retry'; readonly error: string; readonly waitMs: number }
  | { readonly kind: 'step'; readonly text: string; readonly toolCalls: readonly ToolCall[] }
  | { readonly kind: 'action'; readonly action: Action }

export type LoopEnd =
  /** It waits for its children: parked already, with nothing left to say. */
  | { readonly kind: 'left' }
  | { readonly kind: 'finished'; readonly outcome: Outcome }
  | { readonly kind: 'parked'; readonly until: Instant; readonly reason: string; readonly spent: ModelUsage }
  | {
      readonly kind: 'stopped'
      readonly why: 'cancel-requested' | 'superseded'
      readonly spent?: ModelUsage
      /** Messages that were shown to a call which was broken off. */
      readonly taken?: readonly string[]
    }

/** One attempt at a run's turns: what it works with, and how far it has come. */
export interface Course {
  readonly ports: LoopPorts
  readonly attempt: AttemptRef
  readonly session: Session
  readonly signal: AbortSignal
  readonly limits: RunLimits
  readonly contextTokens: number
  /** By name: a stable order keeps a provider's prompt cache warm. */
  readonly tools: readonly ToolDescription[]
  /** What is sent with every request, in tokens. */
  readonly overhead: number
}

export function startCourse(ports: LoopPorts, claim: Claim, session: Session, signal: AbortSignal): Course {
  const tools = [...ports.tools.values()]
    .map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return {
    ports,
    attempt: { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence },
    session,
    signal,
    limits: { ...DEFAULT_LIMITS, ...ports.limits },
    contextTokens: ports.contextTokens ?? LIMITS.contextTokens,
    tools,
    overhead: Math.ceil((ports.system.length + JSON.stringify(tools).length) / LIMITS.charactersPerToken),
  }
}

export const spentOf = ({ session }: Course): Spent => ({ turns: session.turns, usage: session.run })

/** Another worker has the run. What this one was answered is paid for, and kept. */
export async function superseded({ ports, attempt }: Course, late: LateReply): Promise<LoopEnd> {
  await keepUntilStored(ports.clock, () => ports.store.apply(keepLateReply, attempt, late))
  return { kind: 'stopped', why: 'superseded' }
}

/** The end of a run that met one of its limits: with the limit, what was spent, and what it had to say so far. */
export function overLimit(course: Course, error: string): LoopEnd {
  const sentence = `${error}; ${inWords(spentOf(course))}`
  return {
    kind: 'finished',
    outcome: { state: 'failed', code: 'budget', error: sentence, summary: course.session.lastText },
  }
}
