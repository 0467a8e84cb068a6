import type { FunctionBody } from '../define/function.ts'
import { isModelValue } from '../define/model.ts'
import type { ModelValue } from '../define/model.ts'
import type { RunLimits } from '../loop/limits.ts'
import type { ClientSettings } from '../clients/preset.ts'
import { CLIENT_KEYS, readClient } from './client.ts'
import type { Path } from './json-text.ts'
import { readLimits, readPositive } from './limits.ts'
import type { Complain } from './problem.ts'
import { readCommand, readDuration, readList, readOneOf, readRecord, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'
import { readWorkspace } from './workspace.ts'
import type { WorkspaceConfig } from './workspace.ts'

/** A model with tools, or a command that is an agent of its own. */
export type AgentConfig = {
  /** The git repository that its runs change files in: all of a run's, or nothing. */
  readonly workspace?: WorkspaceConfig
} & (
  | {
      readonly kind: 'model'
      readonly model: string | ModelValue
      readonly system: string
      readonly tools: readonly string[]
      /** The agents that its `delegate` may start; by default all the others. */
      readonly delegates?: readonly string[]
      /** What each of its runs may spend. */
      readonly limits?: Partial<RunLimits>
      /** The window of its model, in tokens. */
      readonly contextTokens?: number
      /** A write that was cut off: `park` waits for evidence or a person, `tell` lets the model go on without knowing. */
      readonly doubt?: 'park' | 'tell'
    }
  | {
      readonly kind: 'command'
      readonly command: readonly [string, ...string[]]
      /** Relative to the folder of the configuration. */
      readonly folder?: string
      /** Names of variables that it gets besides the harmless ones. */
      readonly env: readonly string[]
      readonly timeoutMs?: number
      /** The command is a client that we know: its session, its flags and its output are ours to handle. */
      readonly client?: ClientSettings
    }
  /** A function of the program. */
  | { readonly kind: 'function'; readonly body: FunctionBody }
)

const MODEL_KEYS = ['model', 'system', 'tools', 'delegates', 'limits', 'contextTokens', 'doubt']
const COMMAND_KEYS = ['command', 'folder', 'env', 'timeout']
/** `model` is its own word for one there. */
const NOT_FOR_CLIENTS = [...MODEL_KEYS.filter((key) => key !== 'model'), 'command']
const EVERY_AGENTS_KEYS = ['workspace']
/** How a model is named in a configuration. */
export const MODEL = /^(scripted:.+|openai-compatible:https?:\/\/\S+\/\S+|[^/:\s]+\/\S+)$/

export const readAgent: Reader<AgentConfig> = (value, path, complain) => {
  const agent = readRecord(
    value,
    [...MODEL_KEYS, ...COMMAND_KEYS, ...CLIENT_KEYS, ...EVERY_AGENTS_KEYS, 'run'],
    path,
    complain,
  )
  if (typeof agent['run'] === 'function') return { kind: 'function', body: agent['run'] as FunctionBody }
  if (agent['client'] !== undefined) return readClientAgent(agent, path, complain)
  refuse(agent, CLIENT_KEYS, 'is for agents with a client', 'write "client": "claude", or leave it out', path, complain)
  if (agent['command'] !== undefined) {
    const remedy = 'leave out "command", or this and what belongs to it'
    refuse(agent, MODEL_KEYS, 'is for agents with a model', remedy, path, complain)
    const command = readCommand(agent['command'], [...path, 'command'], complain)
    return readCommandAgent(agent, command, path, complain)
  }
  const model = readModel(agent['model'], [...path, 'model'], complain)
  const system = agent['system'] === undefined ? '' : readText(agent['system'], [...path, 'system'], complain)
  const tools = readList(agent['tools'] ?? [], [...path, 'tools'], complain, readText)
  refuse(agent, COMMAND_KEYS, 'is for agents with a command', 'leave it out', path, complain)
  const delegates =
    agent['delegates'] === undefined
      ? {}
      : { delegates: readList(agent['delegates'], [...path, 'delegates'], complain, readText) }
  // Also with a mistake elsewhere, so that the tools it names are looked up.
  return {
    kind: 'model',
    model: model ?? '',
    system: system ?? '',
    tools,
    ...delegates,
    ...readBounds(agent, path, complain),
    ...readFiles(agent, path, complain),
  }
}

function refuse(
  agent: JsonRecord,
  keys: readonly string[],
  what: string,
  remedy: string,
  path: Path,
  complain: Complain,
): void {
  const stray = keys.find((key) => agent[key] !== undefined)
  if (stray !== undefined) complain([...path, stray], what, remedy)
}

function readClientAgent(agent: JsonRecord, path: Path, complain: Complain): AgentConfig | undefined {
  const remedy = 'leave out "client", or this and what belongs to it'
  refuse(agent, NOT_FOR_CLIENTS, 'is not for agents with a client', remedy, path, complain)
  const known = readClient(agent, path, complain)
  const read = readCommandAgent(agent, known === undefined ? undefined : [known.program], path, complain)
  return read === undefined || known === undefined ? undefined : { ...read, client: known.client }
}

function readFiles(agent: JsonRecord, path: Path, complain: Complain): Pick<AgentConfig, 'workspace'> {
  const written = agent['workspace']
  const workspace = written === undefined ? undefined : readWorkspace(written, [...path, 'workspace'], complain)
  return workspace === undefined ? {} : { workspace }
}

function readBounds(agent: JsonRecord, path: Path, complain: Complain) {
  const given = <T>(key: string, read: Reader<T>) =>
    agent[key] === undefined ? undefined : read(agent[key], [...path, key], complain)
  const [limits, contextTokens] = [given('limits', readLimits), given('contextTokens', readPositive)]
  const doubt = given('doubt', readOneOf(['park', 'tell']))
  return {
    ...(limits === undefined ? {} : { limits }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(doubt === undefined ? {} : { doubt }),
  }
}

const readModel: Reader<string | ModelValue> = (value, path, complain) => {
  if (isModelValue(value) || (typeof value === 'string' && MODEL.test(value))) return value
  const what = value === undefined ? 'is missing, and so are "client" and "command"' : 'is not the name of a model'
  return complain(path, what, 'write it as "anthropic/claude-sonnet-5" or "scripted:./replies.json"')
}

type CommandConfig = Extract<AgentConfig, { kind: 'command' }>

function readCommandAgent(
  agent: JsonRecord,
  command: CommandConfig['command'] | undefined,
  path: Path,
  complain: Complain,
): CommandConfig | undefined {
  const given = <T>(key: string, read: Reader<T>) =>
    agent[key] === undefined ? undefined : read(agent[key], [...path, key], complain)
  const [folder, timeoutMs] = [given('folder', readText), given('timeout', readDuration)]
  const env = readList(agent['env'] ?? [], [...path, 'env'], complain, readText)
  const files = readFiles(agent, path, complain)
  if (command === undefined) return undefined
  return {
    kind: 'command',
    command,
    env,
    ...files,
    ...(folder === undefined ? {} : { folder }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }
}
