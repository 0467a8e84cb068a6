import { canonicalJson } from '../base/canonical-json.ts'
import { beginningOf } from '../base/text.ts'
import type { JsonSchema } from '../loop/ports.ts'
import { TOOL_LIMITS } from './limits.ts'

/*
 * The part of JSON Schema that tools use: type (one or several), enum, const, properties, required,
 * additionalProperties, items, minItems, maxItems, minimum, maximum, minLength, maxLength, pattern, anyOf. Other keywords
 * are ignored, as the standard asks of those that are not known; the tool itself then has to say no.
 */

export type Validation = { readonly input: unknown } | { readonly error: string }

/** Checks a call's arguments. The error is for the model: one line for each thing that is wrong, by its path. */
export function validateInput(schema: JsonSchema, input: unknown): Validation {
  const size = canonicalSize(input)
  if (size === undefined) return { error: 'the arguments cannot be written as JSON' }
  if (size > TOOL_LIMITS.inputBytes) {
    const error = `the arguments are too large: ${size} bytes, at most ${TOOL_LIMITS.inputBytes}; pass the name of a file instead`
    return { error }
  }
  const problems = problemsOf(schema, input, '')
  return problems.length === 0 ? { input } : { error: problems.slice(0, MOST_PROBLEMS).join('\n') }
}

// More of them would not help to mend the call.
const MOST_PROBLEMS = 10

function canonicalSize(input: unknown): number | undefined {
  try {
    return Buffer.byteLength(canonicalJson(input))
  } catch {
    return undefined
  }
}

type Check = (schema: JsonSchema, value: unknown, path: string) => string[]

function problemsOf(schema: JsonSchema, value: unknown, path: string): string[] {
  const wrongType = checkType(schema, value, path)
  return wrongType.length > 0 ? wrongType : CHECKS.flatMap((check) => check(schema, value, path))
}

const CHECKS: readonly Check[] = [checkChoice, checkObject, checkArray, checkNumber, checkText, checkAnyOf]

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const IS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isRecord,
}

const ARTICLES: Readonly<Record<string, string>> = { null: 'null', integer: 'a whole number', boolean: 'true or false' }
const named = (type: string) => ARTICLES[type] ?? (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`)

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : value === undefined ? 'nothing' : typeof value

const at = (path: string, what: string) => `${path === '' ? 'the arguments' : path}: ${what}`
const below = (path: string, key: string) => (path === '' ? key : `${path}.${key}`)

function checkType({ type }: JsonSchema, value: unknown, path: string): string[] {
  const wanted = (Array.isArray(type) ? type : [type]).filter((each) => typeof each === 'string')
  if (wanted.length === 0 || wanted.some((each) => IS[each]?.(value) ?? true)) return []
  return [at(path, `must be ${wanted.map(named).join(' or ')}, not ${named(typeOf(value))}`)]
}

function checkChoice(schema: JsonSchema, value: unknown, path: string): string[] {
  const choices = 'const' in schema ? [schema['const']] : schema['enum']
  if (!Array.isArray(choices)) return []
  const text = canonicalJson(value)
  if (choices.some((choice) => canonicalJson(choice) === text)) return []
  return [at(path, `must be ${choices.map((choice) => JSON.stringify(choice)).join(' or ')}`)]
}

function checkObject(schema: JsonSchema, value: unknown, path: string): string[] {
  if (!isRecord(value)) return []
  const properties = isRecord(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'].map(String) : []
  const missing = required.filter((key) => !Object.hasOwn(value, key))
  return [
    ...missing.map((key) => at(below(path, key), 'is required')),
    ...Object.entries(value).flatMap(([key, each]) => {
      const known = Object.hasOwn(properties, key) ? properties[key] : undefined
      return known === undefined
        ? checkAdditional(schema, key, each, path)
        : problemsOf(asSchema(known), each, below(path, key))
    }),
  ]
}

const asSchema = (value: unknown): JsonSchema => (isRecord(value) ? value : {})

function checkAdditional(schema: JsonSchema, key: string, value: unknown, path: string): string[] {
  const { additionalProperties: additional } = schema
  if (additional !== false) return problemsOf(asSchema(additional), value, below(path, key))
  const known = Object.keys(asSchema(schema['properties']))
  const those = known.length === 0 ? 'there are none' : `known are ${known.join(', ')}`
  return [at(below(path, key), `is not an argument; ${those}`)]
}

function checkArray(schema: JsonSchema, value: unknown, path: string): string[] {
  if (!Array.isArray(value)) return []
  const { items } = schema
  return [
    ...bounds(schema, ['minItems', 'maxItems'], value.length, (bound) => at(path, `must have ${bound} entries`)),
    ...(isRecord(items) ? value.flatMap((each, index) => problemsOf(items, each, `${path}[${index}]`)) : []),
  ]
}

function checkNumber(schema: JsonSchema, value: unknown, path: string): string[] {
  if (typeof value !== 'number') return []
  return bounds(schema, ['minimum', 'maximum'], value, (bound) => at(path, `must be ${bound}`))
}

function checkText(schema: JsonSchema, value: unknown, path: string): string[] {
  if (typeof value !== 'string') return []
  const { pattern } = schema
  // The standard counts characters, not UTF-16 units.
  const length = Array.from(value).length
  return [
    ...bounds(schema, ['minLength', 'maxLength'], length, (bound) => at(path, `must have ${bound} characters`)),
    ...(typeof pattern === 'string' && !new RegExp(pattern, 'u').test(value)
      ? [at(path, `must match the pattern ${pattern}`)]
      : []),
  ]
}

function bounds(
  schema: JsonSchema,
  [least, most]: readonly [string, string],
  actual: number,
  say: (bound: string) => string,
): string[] {
  const [minimum, maximum] = [schema[least], schema[most]]
  return [
    ...(typeof minimum === 'number' && actual < minimum ? [say(`at least ${minimum}`)] : []),
    ...(typeof maximum === 'number' && actual > maximum ? [say(`at most ${maximum}`)] : []),
  ]
}

function checkAnyOf({ anyOf }: JsonSchema, value: unknown, path: string): string[] {
  if (!Array.isArray(anyOf) || anyOf.length === 0) return []
  const tried = anyOf.map((each) => problemsOf(asSchema(each), value, path))
  if (tried.some((problems) => problems.length === 0)) return []
  return [at(path, `fits none of the ${anyOf.length} allowed forms (${tried.map((each) => each[0]).join('; ')})`)]
}

/** As much of it as tells it from others. */
function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= 100 ? text : `${beginningOf(text, 100)}…`
}

/** What is wrong with a schema itself, for whoever wrote it; patterns are compiled here so that no call meets a bad one. */
export function schemaProblem(schema: unknown, path = ''): string | undefined {
  if (schema === true || schema === false) return undefined
  if (!isRecord(schema)) return at(path, 'must be a JSON Schema, that is an object')
  const types = [schema['type'] ?? []].flat()
  const unknown = types.find((type) => typeof type !== 'string' || !Object.hasOwn(IS, type))
  if (unknown !== undefined) return at(below(path, 'type'), `${shown(unknown)} is not a type of JSON`)
  if ('pattern' in schema && !compiles(schema['pattern']))
    return at(below(path, 'pattern'), 'is not a regular expression')
  return partsOf(schema)
    .map(([key, part]) => schemaProblem(part, below(path, key)))
    .find((problem) => problem !== undefined)
}

function partsOf(schema: JsonSchema): [string, unknown][] {
  const { properties, items, anyOf, additionalProperties: additional } = schema
  return [
    ...(isRecord(properties) ? Object.entries(properties) : []),
    ...(items === undefined || Array.isArray(items) ? [] : [['items', items] as [string, unknown]]),
    ...(additional === undefined ? [] : [['additionalProperties', additional] as [string, unknown]]),
    ...(Array.isArray(anyOf) ? anyOf.map((each, index): [string, unknown] => [`anyOf[${index}]`, each]) : []),
  ]
}

function compiles(pattern: unknown): boolean {
  try {
    return typeof pattern === 'string' && new RegExp(pattern, 'u').unicode
  } catch {
    return false
  }
}
