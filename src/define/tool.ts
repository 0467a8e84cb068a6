import type { StandardSchemaV1 } from '@standard-schema/spec'

import { parseDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import type { JsonSchema, Tool } from '../loop/ports.ts'
import { toolNameProblem } from '../tools/built-in-names.ts'
import { identityOf } from '../tools/identity.ts'
import { TOOL_LIMITS } from '../tools/limits.ts'
import { TOOL } from './defined-tool.ts'
import type { DefinedTool } from './defined-tool.ts'
import { checkInput, comparableInput, describeInput } from './input.ts'
import type { FunctionPorts, ProbeAnswer, Work } from './perform.ts'

export type { DefinedTool }

/** What a tool is told beside its input: the idempotency key, which is the same for every try of this action, and whose it is. */
export interface CallInfo {
  readonly key: string
  readonly threadId: string
  readonly runId: string
}

/** By types, a function may leave arguments out. This one may not: without the signal nobody could stop it. */
type TakesSignal<Run extends (...args: never) => unknown> = Parameters<Run>['length'] extends 0 | 1
  ? { readonly 'run must take the signal: (input, signal) => …': never }
  : unknown

type Output<Schema extends StandardSchemaV1> = StandardSchemaV1.InferOutput<Schema>

interface Described<Schema extends StandardSchemaV1> {
  readonly name: string
  readonly description: string
  readonly effect: 'read' | 'write'
  /** The arguments that make two calls the same action; all of them by default. */
  readonly identity?: readonly (keyof Output<Schema> & string)[]
  /** `once` (the default for writes): an identical call in a run gets the first one's result. */
  readonly repeat?: 'once' | 'each'
  /** Widens `once` beyond one run: `{ per: 'agent', within: '24h' }`. */
  readonly once?: { readonly per: 'thread' | 'agent'; readonly within: string }
  /** It honours `key` itself, so that after a crash it may be run again. */
  readonly idempotent?: boolean
  /** As `10s`; 30 minutes by default. */
  readonly timeout?: string
  /** Asks the world whether the action happened. */
  readonly probe?: (
    input: Output<Schema>,
    signal: AbortSignal,
    call: CallInfo,
  ) => ProbeAnswer | PromiseLike<ProbeAnswer>
}

type Input<Schema extends StandardSchemaV1> =
  /** `inputSchema` is for schemas that cannot describe themselves as JSON Schema. */
  | { readonly input: Schema; readonly inputSchema?: JsonSchema }
  | { readonly input?: never; readonly inputSchema: JsonSchema }

export type ToolDefinition<
  Schema extends StandardSchemaV1,
  Run extends (input: Output<Schema>, signal: AbortSignal, call: CallInfo) => unknown,
> = Described<Schema> & Input<Schema> & { readonly run: Run & TakesSignal<Run> }

/**
 * A tool that is a function. It may be stopped at any time by its signal, and killed at any time with its process:
 * what a write had begun by then is in doubt until its probe or its idempotency settles it. A write that throws is in
 * doubt too, unless it throws `notDone(…)`.
 */
export function defineTool<
  Run extends (input: Output<Schema>, signal: AbortSignal, call: CallInfo) => unknown,
  Schema extends StandardSchemaV1 = StandardSchemaV1<Record<string, unknown>>,
>(definition: ToolDefinition<Schema, Run>): DefinedTool {
  const { name, description, effect, probe, idempotent = false } = definition
  const run = definition.run as Work
  checkDefinition(name, description, effect, run)
  const input = describeInput(name, definition.input, definition.inputSchema)
  checkIdentity(name, definition.identity, input.jsonSchema)
  const parts = {
    name,
    description,
    effect,
    inputSchema: input.jsonSchema,
    repeat: definition.repeat ?? (effect === 'write' ? ('once' as const) : ('each' as const)),
    ...windowOf(name, effect, definition.repeat, definition.once),
    timeoutMs: definition.timeout === undefined ? TOOL_LIMITS.backstopMs : parseDuration(definition.timeout),
    idempotent,
    identity: (given: unknown) => identityOf(comparableInput(input, given), definition.identity),
    validate: (given: unknown) => checkInput(input, given),
  }
  const open = (ports: FunctionPorts): Tool => {
    const plain = { name, effect, input, run, ports }
    const asking = probe === undefined ? undefined : { ...plain, probe: probe as Work }
    return {
      ...parts,
      perform: async (given, context) => (await performing()).performWork(asking ?? plain, given, context),
      goesOn: async (key) => (await import('./owner.ts')).isUnderWay(key),
      ...(asking === undefined
        ? {}
        : { probe: async (given, context) => (await performing()).askProbe(asking, given, context) }),
    }
  }
  return Object.freeze({ name, [TOOL]: open })
}

/** Loaded when something is to be done: who defines tools may only want to look. */
const performing = () => import('./perform.ts')

function checkDefinition(name: string, description: string, effect: string, run: unknown): void {
  const problem = toolNameProblem(name)
  if (problem !== undefined) throw wrong(name, `its name ${problem.what}`, problem.remedy)
  if (typeof description !== 'string' || description.trim() === '')
    throw wrong(name, 'it has no description', 'say what it does, in words for the model')
  if (effect !== 'read' && effect !== 'write')
    throw wrong(name, 'its effect must be "read" or "write"', 'write "write" if it changes anything')
  if (typeof run !== 'function' || run.length < 2)
    throw wrong(
      name,
      'its run does not take the signal',
      'write run: async (input, signal) => … and pass the signal on',
    )
}

function windowOf(
  name: string,
  effect: string,
  repeat: string | undefined,
  once: { readonly per: 'thread' | 'agent'; readonly within: string } | undefined,
): Pick<Tool, 'once'> {
  if (once === undefined) return {}
  const { per, within } = once
  if (effect !== 'write' || repeat === 'each' || (per !== 'thread' && per !== 'agent'))
    throw wrong(
      name,
      'its once is for a write that is not repeated',
      'write { per: "thread" or "agent", within: "24h" }',
    )
  return { once: { per, withinMs: parseDuration(within) } }
}

/** An identity that names nothing would make all calls the same action. */
function checkIdentity(name: string, identity: readonly string[] | undefined, schema: JsonSchema): void {
  const known = Object.keys((schema['properties'] as object | undefined) ?? {})
  const stranger = identity?.find((each) => !known.includes(each))
  if (stranger === undefined && identity?.length !== 0) return
  const what = stranger === undefined ? 'nothing' : `"${stranger}", which is not an argument`
  throw wrong(name, `its identity names ${what}`, `there are: ${known.join(', ')}`)
}

const wrong = (name: string, what: string, remedy: string) =>
  new HoldfastError('usage/tool', `the tool "${name}" cannot be used: ${what}`, { remedy })

/** For a tool to throw: what it was asked to do certainly did not happen, and may be tried again. */
export const notDone = (why: string): HoldfastError => new HoldfastError('tool/not-done', why)
