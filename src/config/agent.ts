import { isModelValue } from '../define/model.ts'
import type { ModelValue } from '../define/model.ts'
import type { RunLimits } from '../loop/limits.ts'
import type { Path } from './json-text.ts'
import { readLimits, readPositive } from './limits.ts'
import type { Complain } from './problem.ts'
import { readCommand, readDuration, readList, readOneOf, readRecord, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'

/** A model with tools, or a command that is an agent of its own. */
export type AgentConfig =
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
    }

const MODEL_KEYS = ['model', 'system', 'tools', 'delegates', 'limits', 'contextTokens', 'doubt']
const COMMAND_KEYS = ['command', 'folder', 'env', 'timeout']
const MODEL = /^(scripted:.+|openai-compatible:https?:\/\/\S+\/\S+|[^/:\s]+\/\S+)$/

export const readAgent: Reader<AgentConfig> = (value, path, complain) => {
  const agent = readRecord(value, [...MODEL_KEYS, ...COMMAND_KEYS], path, complain)
  if (agent['command'] !== undefined) {
    const extra = MODEL_KEYS.find((key) => agent[key] !== undefined)
    if (extra !== undefined) {
      complain([...path, extra], 'is for agents with a model', 'leave out "command", or this and what belongs to it')
    }
    return readCommandAgent(agent, path, complain)
  }
  const model = readModel(agent['model'], [...path, 'model'], complain)
  const system = agent['system'] === undefined ? '' : readText(agent['system'], [...path, 'system'], complain)
  const tools = readList(agent['tools'] ?? [], [...path, 'tools'], complain, readText)
  const stray = COMMAND_KEYS.find((key) => agent[key] !== undefined)
  if (stray !== undefined) complain([...path, stray], 'is for agents with a command', 'leave it out')
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
  }
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
  const what = value === undefined ? 'is missing, and so is "command"' : 'is not the name of a model'
  return complain(path, what, 'write it as "anthropic/claude-sonnet-5" or "scripted:./replies.json"')
}

function readCommandAgent(agent: JsonRecord, path: Path, complain: Complain): AgentConfig | undefined {
  const command = readCommand(agent['command'], [...path, 'command'], complain)
  const given = <T>(key: string, read: Reader<T>) =>
    agent[key] === undefined ? undefined : read(agent[key], [...path, key], complain)
  const [folder, timeoutMs] = [given('folder', readText), given('timeout', readDuration)]
  const env = readList(agent['env'] ?? [], [...path, 'env'], complain, readText)
  if (command === undefined) return undefined
  return {
    kind: 'command',
    command,
    env,
    ...(folder === undefined ? {} : { folder }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }
}
