import type { Action } from '../actions/action.ts'
import type { ToolCall } from '../loop/ports.ts'
import type { RunView } from '../runs/view.ts'

/** What whoever waits for an answer hears on the way to it. */
export type AgentEvent =
  /** A worker has taken it up; once more after a crash or a wait. */
  | { readonly type: 'started'; readonly runId: string; readonly threadId: string; readonly attempt: number }
  /** The model is speaking, word by word, or a reply at a time if it is in another process. */
  | { readonly type: 'text'; readonly delta: string }
  /** Its call broke off and is made again: the words since the last step are void. */
  | { readonly type: 'retry' }
  /** A reply is recorded: it will not be asked for again. */
  | { readonly type: 'step'; readonly text: string; readonly toolCalls: readonly ToolCall[] }
  | ActionEvent
  /** It is parked, and holds no process until it goes on. */
  | { readonly type: 'waiting'; readonly for: string }
  | { readonly type: 'finished'; readonly run: RunView }

export interface ActionEvent {
  readonly type: 'action'
  readonly id: string
  readonly tool: string
  readonly input: unknown
  readonly state: Action['state']
  readonly result?: unknown
  readonly error?: string
}

export function actionEvent(action: Action, state: Action['state']): ActionEvent {
  const { id, tool, input, result, error } = action
  const begun = { type: 'action', id, tool, input, state } as const
  if (state === 'started') return begun
  return { ...begun, ...(result === null ? {} : { result }), ...(error === null ? {} : { error }) }
}
