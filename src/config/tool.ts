import { isDefinedTool } from '../define/defined-tool.ts'
import type { DefinedTool } from '../define/defined-tool.ts'
import { toolNameProblem } from '../tools/built-in-names.ts'
import type { CommandToolDefinition } from '../tools/command-tool.ts'
import { TOOL_LIMITS } from '../tools/limits.ts'
import { schemaProblem } from '../tools/schema.ts'
import type { JsonSchema } from '../loop/ports.ts'
import { findCycle } from './cycle.ts'
import type { Path } from './json-text.ts'
import { readOnce } from './once.ts'
import { suggest } from './problem.ts'
import type { Complain } from './problem.ts'
import { readCommand, readDuration, readFlag, readList, readOneOf, readRecord, readText } from './read.ts'
import type { JsonRecord, Reader } from './read.ts'

const KEYS = [
  'effect',
  'description',
  'input',
  'identity',
  'repeat',
  'once',
  'command',
  'probe',
  'stop',
  'idempotent',
  'timeout',
] as const

const EFFECTS = ['read', 'write'] as const
const REPEATS = ['once', 'each'] as const

type Key = (typeof KEYS)[number]

const ANYTHING: JsonSchema = { type: 'object' }

/** A command, or a function of `defineTool`. */
export type ToolConfig = CommandToolDefinition | DefinedTool

export const readTool: Reader<ToolConfig> = (value, path, complain) => {
  checkName(path, complain)
  if (isDefinedTool(value)) return underItsName(value, path, complain)
  const tool = readRecord(value, KEYS, path, complain)
  const optional = <T>(key: Key, read: Reader<T>) =>
    tool[key] === undefined ? undefined : read(tool[key], [...path, key], complain)
  const effect = readOneOf(EFFECTS)(tool['effect'], [...path, 'effect'], complain)
  const description = readText(tool['description'], [...path, 'description'], complain)
  const command = readCommand(tool['command'], [...path, 'command'], complain)
  const input = optional('input', readSchema) ?? ANYTHING
  const [probe, stop] = [optional('probe', readCommand), optional('stop', readCommand)]
  const repeat = optional('repeat', readOneOf(REPEATS)) ?? (effect === 'write' ? 'once' : 'each')
  const once = optional('once', readOnce)
  if (tool['once'] !== undefined && (repeat !== 'once' || effect !== 'write'))
    complain([...path, 'once'], 'is for writes with "repeat": "once"', 'leave it out')
  const rest = {
    repeat,
    ...(once === undefined ? {} : { once }),
    idempotent: optional('idempotent', readFlag) ?? false,
    timeoutMs: optional('timeout', readDuration) ?? TOOL_LIMITS.backstopMs,
    ...readIdentity(tool, input, path, complain),
    ...(probe === undefined ? {} : { probe }),
    ...(stop === undefined ? {} : { stop }),
  }
  if (effect === undefined || description === undefined || command === undefined) return undefined
  return { effect, description, input, command, ...rest }
}

function underItsName(tool: DefinedTool, path: Path, complain: Complain): DefinedTool | undefined {
  if (tool.name === path.at(-1)) return tool
  return complain(path, `is the tool "${tool.name}"`, 'write it under its own name')
}

function checkName(path: Path, complain: Complain): void {
  const problem = toolNameProblem(String(path.at(-1)))
  if (problem !== undefined) complain(path, problem.what, problem.remedy)
}

const readSchema: Reader<JsonSchema> = (value, path, complain) => {
  const cycle = findCycle(value, path)
  if (cycle !== undefined) return complain(cycle, 'leads back into itself', 'write out as much of it as is needed')
  const problem = schemaProblem(value)
  if (problem !== undefined) return complain(path, `is not a JSON Schema (${problem})`, 'see json-schema.org')
  const schema = value as JsonSchema
  if (schema['type'] === 'object') return schema
  return complain(path, 'must describe an object', 'models pass arguments by name: write "type": "object"')
}

function readIdentity(
  tool: JsonRecord,
  input: JsonSchema,
  path: Path,
  complain: Complain,
): Pick<CommandToolDefinition, 'identity'> {
  if (tool['identity'] === undefined) return {}
  const at = [...path, 'identity']
  const identity = readList(tool['identity'], at, complain, readText)
  const known = Object.keys((input['properties'] as object | undefined) ?? {})
  for (const [index, name] of identity.entries()) {
    if (!known.includes(name))
      complain([...at, index], `names "${name}", which is not an argument`, suggest(name, known))
  }
  return { identity }
}
