import { isBuiltIn } from '../tools/built-in-names.ts'
import type { CommandToolDefinition } from '../tools/command-tool.ts'
import { TOOL_LIMITS } from '../tools/limits.ts'
import { schemaProblem } from '../tools/schema.ts'
import type { JsonSchema } from '../loop/ports.ts'
import type { Path } from './json-text.ts'
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
  'command',
  'probe',
  'stop',
  'idempotent',
  'timeout',
] as const

const EFFECTS = ['read', 'write'] as const
const REPEATS = ['once', 'each'] as const

type Key = (typeof KEYS)[number]

// What every provider of models takes as the name of a tool.
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/
const ANYTHING: JsonSchema = { type: 'object' }

export const readTool: Reader<CommandToolDefinition> = (value, path, complain) => {
  checkName(path, complain)
  const tool = readRecord(value, KEYS, path, complain)
  const optional = <T>(key: Key, read: Reader<T>) =>
    tool[key] === undefined ? undefined : read(tool[key], [...path, key], complain)
  const effect = readOneOf(EFFECTS)(tool['effect'], [...path, 'effect'], complain)
  const description = readText(tool['description'], [...path, 'description'], complain)
  const command = readCommand(tool['command'], [...path, 'command'], complain)
  const input = optional('input', readSchema) ?? ANYTHING
  const [probe, stop] = [optional('probe', readCommand), optional('stop', readCommand)]
  const rest = {
    repeat: optional('repeat', readOneOf(REPEATS)) ?? (effect === 'write' ? 'once' : 'each'),
    idempotent: optional('idempotent', readFlag) ?? false,
    timeoutMs: optional('timeout', readDuration) ?? TOOL_LIMITS.backstopMs,
    ...readIdentity(tool, input, path, complain),
    ...(probe === undefined ? {} : { probe }),
    ...(stop === undefined ? {} : { stop }),
  }
  if (effect === undefined || description === undefined || command === undefined) return undefined
  return { effect, description, input, command, ...rest }
}

function checkName(path: Path, complain: Complain): void {
  const name = String(path.at(-1))
  if (!NAME.test(name)) {
    complain(path, 'cannot be the name of a tool', 'use letters, digits, _ and -, a letter first, 64 at most')
  }
  if (isBuiltIn(name)) complain(path, 'is the name of a built-in tool', 'choose another one')
}

const readSchema: Reader<JsonSchema> = (value, path, complain) => {
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
