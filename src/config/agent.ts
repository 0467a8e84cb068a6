import { readCommand, readList, readRecord, readText } from './read.ts'
import type { Reader } from './read.ts'

/** A model with tools, or a command that is an agent of its own. */
export type AgentConfig =
  | { readonly kind: 'model'; readonly model: string; readonly system: string; readonly tools: readonly string[] }
  | { readonly kind: 'command'; readonly command: readonly [string, ...string[]] }

const MODEL_KEYS = ['model', 'system', 'tools']
const MODEL = /^(scripted:.+|[^/:\s]+\/\S+)$/

export const readAgent: Reader<AgentConfig> = (value, path, complain) => {
  const agent = readRecord(value, [...MODEL_KEYS, 'command'], path, complain)
  if (agent['command'] !== undefined) {
    const extra = MODEL_KEYS.find((key) => agent[key] !== undefined)
    if (extra !== undefined) {
      complain([...path, extra], 'is for agents with a model', 'leave out "command", or this and what belongs to it')
    }
    const command = readCommand(agent['command'], [...path, 'command'], complain)
    return command === undefined ? undefined : { kind: 'command', command }
  }
  const model = readModel(agent['model'], [...path, 'model'], complain)
  const system = agent['system'] === undefined ? '' : readText(agent['system'], [...path, 'system'], complain)
  const tools = readList(agent['tools'] ?? [], [...path, 'tools'], complain, readText)
  // Also with a mistake elsewhere, so that the tools it names are looked up.
  return { kind: 'model', model: model ?? '', system: system ?? '', tools }
}

const readModel: Reader<string> = (value, path, complain) => {
  if (typeof value === 'string' && MODEL.test(value)) return value
  const what = value === undefined ? 'is missing, and so is "command"' : 'is not the name of a model'
  return complain(path, what, 'write it as "anthropic/claude-sonnet-5" or "scripted:./replies.json"')
}
