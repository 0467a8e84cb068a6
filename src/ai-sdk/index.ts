import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { LanguageModel, ToolApprovalConfiguration, ToolSet } from 'ai'

import type { FunctionRun } from '../define/function.ts'
import { durableApproval, programSays } from './approval.ts'
import type { AnyApproval } from './approval.ts'
import { durableModel } from './model.ts'
import { durableTools } from './tools.ts'
import type { AnyTools, ToolAction, ToolsOptions } from './tools.ts'

export { idempotencyKey } from './tools.ts'
export type { ToolAction } from './tools.ts'

export interface DurableParts<TOOLS extends ToolSet> extends DurableModel {
  readonly tools: TOOLS
  /** As the AI SDK takes it. What it leaves to the user is asked of a person through Holdfast. */
  readonly toolApproval?: ToolApprovalConfiguration<TOOLS, never>
  /** How the tools count: `{ lookUp: 'read', charge: { idempotent: true } }`. What is not said is a write. */
  readonly actions?: { readonly [Name in keyof TOOLS]?: 'read' | 'write' | ToolAction }
  /** When nobody knows whether a write happened: wait for a person (the default), or tell the model so. */
  readonly doubt?: 'park' | 'tell'
}

export interface DurableModel {
  readonly model: LanguageModel
  /** Whether this model is shown what is in the run's inbox; by default it is. */
  readonly inbox?: boolean
  /** The run that it belongs to; by default the function in which it is used. */
  readonly run?: FunctionRun
}

export interface Durable<TOOLS extends ToolSet> {
  readonly model: LanguageModelV4
  readonly tools: TOOLS
  readonly toolApproval: ToolApprovalConfiguration<TOOLS, unknown>
}

/**
 * A model and tools for a loop of the AI SDK that survives its process: `generateText({ ...durable({ model, tools }), prompt })` in
 * a function of `defineFunction`. What the model answered and what the tools did is recorded, and not asked for or done again.
 */
export function durable<TOOLS extends ToolSet>(parts: DurableParts<TOOLS>): Durable<TOOLS>
/** Of a model without tools. */
export function durable(parts: DurableModel): Pick<Durable<never>, 'model'>
export function durable(parts: AnyParts): object {
  const { model, toolApproval, actions = {}, doubt = 'park', inbox = true, run } = parts
  const tools = (parts.tools ?? {}) as AnyTools
  const theirs = toolApproval as AnyApproval | undefined
  const options = { run, tools, actions: actions as ToolsOptions['actions'], doubt, says: programSays(theirs, tools) }
  return {
    model: durableModel(model, { run, inbox }),
    tools: durableTools(options),
    toolApproval: durableApproval(options, theirs),
  }
}

/** Whatever tools they are: their types are for who passes them. */
interface AnyParts extends DurableModel {
  readonly tools?: object
  readonly toolApproval?: unknown
  readonly actions?: object
  readonly doubt?: 'park' | 'tell'
}
