import { resolve } from 'node:path'

import type { ActionId, MessageId, RunId, ThreadId } from '../base/ids.ts'
import { harmlessVariables } from '../base/variables.ts'
import type { JsonSchema, Tool, ToolContext, ToolOutcome } from '../loop/ports.ts'
import { thisPlace } from '../processes/identity.ts'
import { startChild } from '../runs/children.ts'
import type { ChildLimits, NewChild, StartedChild } from '../runs/children.ts'
import { PARENT_MODES } from '../runs/run.ts'
import type { ParentMode } from '../runs/run.ts'
import type { Store } from '../store/store.ts'
import { WORKSPACE_MODES } from '../workspace/workspace.ts'
import type { WorkspaceMode, WorkspaceRequest } from '../workspace/workspace.ts'
import { TOOL_LIMITS } from './limits.ts'
import { validateInput } from './schema.ts'
import type { CommandPlace } from './supervised-command.ts'

export interface DelegateOptions {
  readonly store: Store
  readonly place: CommandPlace
  /** The agents that it may start. */
  readonly agents: readonly string[]
  /** Whether it may also start commands: for an agent that has a shell this is nothing new. */
  readonly commands: boolean
  readonly limits: ChildLimits
  readonly backlogLimit: number
}

interface DelegateInput {
  readonly agent?: string
  readonly task?: string
  readonly command?: readonly [string, ...string[]]
  readonly folder?: string
  readonly workspace?: { readonly root: string; readonly mode?: WorkspaceMode; readonly check?: string }
  readonly mode?: ParentMode
}

const MODES =
  'wait: your next turn comes when it has ended. background (default): go on; its completion comes with one of your next turns, ' +
  'and your own work does not end before it. detached: you may end; its completion starts a new turn of yours.'

/**
 * Starts a child: a thread of its own, whose end comes back as a message. It is performed again after a crash without a second
 * child, since every id of the child comes from the action.
 */
export function delegateTool(options: DelegateOptions): Tool {
  const schema = schemaOf(options)
  return {
    name: 'delegate',
    description:
      'Gives a task to another agent, which works on it in a thread of its own, side by side with you. What it did is told to you as a message when it has ended.',
    inputSchema: schema,
    effect: 'write',
    repeat: 'each',
    timeoutMs: TOOL_LIMITS.delegateMs,
    idempotent: true,
    identity: (input) => input,
    validate(input) {
      const valid = validateInput(schema, input)
      return 'error' in valid ? valid : checked(valid.input as DelegateInput, options)
    },
    perform: async (input, context) => {
      const child = childOf(input as DelegateInput, context, options)
      return outcomeOf(await options.store.apply(startChild, child), child)
    },
  }
}

function schemaOf({ agents, commands }: DelegateOptions): JsonSchema {
  const agent = { type: 'string', enum: agents, description: 'Who is to do it.' }
  const task = {
    type: 'string',
    minLength: 1,
    description: 'What is to be done, with everything that it needs to know.',
  }
  const mode = { type: 'string', enum: PARENT_MODES, description: MODES }
  if (!commands) {
    return {
      type: 'object',
      properties: { agent, task, mode },
      required: ['agent', 'task'],
      additionalProperties: false,
    }
  }
  const command = {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    description: 'Instead of an agent: a program with its arguments, as a long-running child.',
  }
  const folder = { type: 'string', minLength: 1, description: 'The working folder of the command.' }
  const properties = { agent, task, command, folder, workspace: WORKSPACE, mode }
  return { type: 'object', properties, additionalProperties: false }
}

/** Of a command; an agent has that of its configuration. */
const WORKSPACE: JsonSchema = {
  type: 'object',
  description:
    'Of a command: what it does to the files of a git repository lands whole and checked, or not at all. It works there, so leave out "folder".',
  properties: {
    root: { type: 'string', minLength: 1, description: 'A folder in the repository.' },
    mode: {
      type: 'string',
      enum: WORKSPACE_MODES,
      description: 'transaction: in a tree of its own. shadow (default): only records what that would have done.',
    },
    check: { type: 'string', minLength: 1, description: 'What must succeed before anything lands, for /bin/sh.' },
  },
  required: ['root'],
  additionalProperties: false,
}

function checked(input: DelegateInput, { agents }: DelegateOptions): { input: DelegateInput } | { error: string } {
  if (input.command !== undefined && (input.agent !== undefined || input.task !== undefined))
    return { error: 'either "agent" and "task", or "command"' }
  if (input.workspace !== undefined && (input.command === undefined || input.folder !== undefined))
    return { error: '"workspace" is for a "command", without "folder": an agent has one of its own' }
  if (input.command !== undefined) return { input }
  if (input.agent === undefined || input.task === undefined)
    return { error: `"agent" and "task" are needed; there are the agents: ${agents.join(', ')}` }
  return { input }
}

function childOf(input: DelegateInput, context: ToolContext, options: DelegateOptions): NewChild {
  const { agent = 'command', task = '', command, folder, mode = 'background' } = input
  const { place, limits, backlogLimit } = options
  const workspace = workspaceOf(input, place)
  const cwd = workspace?.root ?? folder ?? place.cwd
  const files = workspace === undefined ? {} : { workspace }
  const request = command === undefined ? undefined : { kind: 'command' as const, argv: command, cwd, ...files }
  return {
    parentRunId: context.runId,
    mode,
    agent,
    key: `delegate:${context.key}`,
    ...idsFrom(context.key),
    work: request === undefined ? { task } : { request: { ...request, env: harmlessVariables(place.env) } },
    // Its repository is here.
    ...(workspace === undefined ? {} : { host: thisPlace().host }),
    limits,
    backlogLimit,
  }
}

function workspaceOf({ workspace }: DelegateInput, { cwd }: CommandPlace): WorkspaceRequest | undefined {
  if (workspace === undefined) return undefined
  const { root, mode = 'shadow', check } = workspace
  return { root: resolve(cwd, root), mode, ...(check === undefined ? {} : { check: { command: check } }) }
}

/** The action's own number: the same child, however often the action is performed. */
function idsFrom(key: ActionId): Pick<NewChild, 'threadId' | 'runId' | 'messageId'> {
  const number = key.slice(key.indexOf('_') + 1)
  return {
    threadId: `thr_${number}` as ThreadId,
    runId: `run_${number}` as RunId,
    messageId: `msg_${number}` as MessageId,
  }
}

function outcomeOf(started: StartedChild, { agent, mode, limits }: NewChild): ToolOutcome {
  switch (started.kind) {
    case 'started':
      return {
        kind: 'done',
        result: { threadId: started.threadId, runId: started.runId, agent, mode, state: 'started' },
      }
    case 'refused':
      return { kind: 'failed', error: 'cancelled before it had started' }
    case 'backlog-full':
      return { kind: 'failed', error: `${started.limit} runs are waiting already; wait until some have ended` }
    case 'limit':
      return { kind: 'failed', endsRun: true, error: LIMIT_WORDS[started.limit](limits) }
  }
}

const LIMIT_WORDS = {
  depth: ({ depth }: ChildLimits) => `delegation is ${depth} levels deep, and that is the limit`,
  children: ({ children }: ChildLimits) => `${children} children are at work already, and that is the limit`,
}
