import type { ModelValue } from './model.ts'
import type { DefinedTool } from './tool.ts'

export interface AgentDefinition {
  readonly name: string
  /** `anthropic/claude-sonnet-5`, `scripted:./replies.json`, a model of the AI SDK, or one of your own. */
  readonly model: string | ModelValue
  readonly system?: string
  /** Tools of `defineTool`, and the names of built-in ones. */
  readonly tools?: readonly (DefinedTool | string)[]
  /** The agents that its `delegate` may start; by default all the others. */
  readonly delegates?: readonly string[]
  /** What each of its runs may spend: `{ turns: 50, costUsd: 2, timeout: '30m' }`. */
  readonly limits?: AgentLimits
  /** The window of its model, in tokens: what is known of the model, else 150,000. */
  readonly contextTokens?: number
  /** A write that was cut off: `park` (the default) waits for evidence or a person, `tell` lets the model go on without knowing. */
  readonly doubt?: 'park' | 'tell'
}

/** Over all attempts at a run. What is not said is as everywhere. */
export interface AgentLimits {
  readonly turns?: number
  readonly tokens?: number
  readonly costUsd?: number
  readonly timeout?: string
  readonly truncatedReplies?: number
}

/** An agent with a model. What is wrong with it is said by the runtime that it is given to. */
export const defineAgent = (definition: AgentDefinition): AgentDefinition => Object.freeze({ ...definition })
