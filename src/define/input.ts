import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'

import { HoldfastError, describeError } from '../base/errors.ts'
import type { JsonSchema } from '../loop/ports.ts'
import { schemaProblem, validateInput } from '../tools/schema.ts'
import type { Validation } from '../tools/schema.ts'

/*
 * What a model sent is recorded as it is, because only JSON survives a crash. The schema's own form of it (defaults
 * filled in, texts made dates) is computed anew each time it is needed.
 */

export interface InputForm {
  readonly jsonSchema: JsonSchema
  readonly schema?: StandardSchemaV1
}

/** How the input looks, for the model and for the check. */
export function describeInput(
  tool: string,
  schema: StandardSchemaV1 | undefined,
  written: JsonSchema | undefined,
): InputForm {
  const jsonSchema = written ?? (schema === undefined ? undefined : ownDescription(tool, schema))
  const problem = jsonSchema === undefined ? 'is missing' : schemaProblem(jsonSchema)
  if (jsonSchema === undefined || problem !== undefined) throw wrong(tool, `(${problem})`)
  if (jsonSchema['type'] !== 'object')
    throw wrong(tool, 'must describe an object, because models pass arguments by name')
  return schema === undefined ? { jsonSchema } : { jsonSchema, schema }
}

function ownDescription(tool: string, schema: StandardSchemaV1): JsonSchema {
  const { jsonSchema } = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>
  if (jsonSchema === undefined) throw wrong(tool, 'cannot describe itself as JSON Schema')
  try {
    const { $schema: _, ...described } = jsonSchema.input({ target: 'draft-2020-12' })
    return described
  } catch (error) {
    throw wrong(tool, `cannot be described as JSON Schema (${describeError(error)})`)
  }
}

const wrong = (tool: string, what: string) =>
  new HoldfastError('usage/tool', `the input of the tool "${tool}" ${what}`, {
    remedy: 'give input a Standard Schema such as z.object({ … }), or inputSchema a JSON Schema of type object',
  })

/** Says in words for the model what is wrong, by its path. */
export function checkInput(form: InputForm, given: unknown): Validation {
  const asJson = validateInput(form.schema === undefined ? form.jsonSchema : {}, given)
  if ('error' in asJson || form.schema === undefined) return asJson
  try {
    const { issues } = validated(form.schema, given)
    return issues === undefined ? { input: given } : { error: issues.slice(0, MOST_ISSUES).map(asSentence).join('\n') }
  } catch (error) {
    return { error: `the arguments could not be checked: ${describeError(error)}` }
  }
}

// More of them would not help to mend the call.
const MOST_ISSUES = 10

/** The input as the schema gives it to the tool. It was checked before; that it fits no more means a changed program. */
export function readAgain(
  { schema }: InputForm,
  given: unknown,
): { readonly value: unknown } | { readonly error: string } {
  if (schema === undefined) return { value: given }
  try {
    const result = validated(schema, given)
    if (result.issues === undefined) return { value: result.value }
    return { error: `its input does not fit any more: ${result.issues.map(asSentence).join('; ')}` }
  } catch (error) {
    return { error: `its input could not be read again: ${describeError(error)}` }
  }
}

/**
 * What two calls are compared by: the schema's form, in which a default that was left out and one that was written are
 * the same. Where that is more than JSON, as a Map is, what the model sent: its JSON form could be the same for two
 * different actions, and the second would not be performed.
 */
export function comparableInput(form: InputForm, given: unknown): unknown {
  const parsed = readAgain(form, given)
  return 'value' in parsed && isJson(parsed.value) ? parsed.value : given
}

/** `isText`: which objects stand for a text or for other JSON. */
export function isJson(value: unknown, isText: (value: object) => boolean = () => false): boolean {
  if (value === null || ['string', 'boolean', 'undefined'].includes(typeof value)) return true
  if (typeof value !== 'object') return Number.isFinite(value)
  if (isText(value)) return true
  const kind: unknown = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && kind !== Object.prototype && kind !== null) return false
  return Object.values(value).every((each) => isJson(each, isText))
}

function validated(schema: StandardSchemaV1, given: unknown): StandardSchemaV1.Result<unknown> {
  const result = schema['~standard'].validate(given)
  if (!('then' in result)) return result
  // Nobody waits for it; its failure must not end the process.
  result.catch(() => {})
  throw new HoldfastError('usage/tool', 'its schema has an asynchronous check', {
    remedy: 'do that part in the tool itself, and throw notDone(…) there',
  })
}

function asSentence({ path = [], message }: StandardSchemaV1.Issue): string {
  const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment))
  const place = keys.reduce<string>(
    (before, key) =>
      typeof key === 'number' ? `${before}[${key}]` : before === '' ? String(key) : `${before}.${String(key)}`,
    '',
  )
  return `${place === '' ? 'the arguments' : place}: ${message}`
}
