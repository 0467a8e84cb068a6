import type { FunctionBody, FunctionRun } from './function.ts'
import type { ModelValue } from './model.ts'
import type { DefinedTool } from './tool.ts'

/** A function that is called with an input; what it does in steps is recorded and happens once. */
export interface FunctionDefinition {
  readonly name: string
  readonly run: FunctionBody
}

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
  /** A git repository: what a run does to its files lands whole and checked, or not at all. */
  readonly workspace?: AgentWorkspace
}

/** As in a configuration file. */
export interface AgentWorkspace {
  readonly root: string
  /** `shadow` (the default) changes nothing and records what a `transaction` would have done. */
  readonly mode?: 'shadow' | 'transaction'
  /** A line for /bin/sh, or an executable file of the repository. */
  readonly check?: string | { readonly file: string }
  readonly checkTimeout?: string
  /** What git ignores and a run needs, by its path in the repository. */
  readonly copy?: readonly string[]
  readonly link?: readonly string[]
  readonly commits?: 'squash' | 'keep'
  /** How long discarded work can be brought back. */
  readonly keep?: string
  readonly largestFile?: string
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

/** An agent that is a function. */
export const defineFunction = <Input>(name: string, run: (run: FunctionRun<Input>) => unknown): FunctionDefinition =>
  Object.freeze({ name, run })
