import { AsyncLocalStorage } from 'node:async_hooks'
import { isDeepStrictEqual } from 'node:util'

import { asSchema } from 'ai'
import type { Tool as SdkTool, ToolExecutionOptions } from 'ai'

import { parseDuration } from '../base/duration.ts'
import { HoldfastError } from '../base/errors.ts'
import { LIMITS } from '../base/limits.ts'
import { isJson } from '../define/input.ts'
import type { OwnCall, OwnLoop, ProgramSays } from '../define/own-loop.ts'
import { isUnderWay } from '../define/owner.ts'
import { askProbe, performWork } from '../define/perform.ts'
import type { FunctionTool, ProbeAnswer } from '../define/perform.ts'
import type { Tool } from '../loop/ports.ts'
import { identityOf } from '../tools/identity.ts'
import { TOOL_LIMITS } from '../tools/limits.ts'
import { keep, revive } from './kept.ts'
import { lastOf, tellsProgress, withProgress } from './progress.ts'
import type { Tell } from './progress.ts'
import { loopOf, wantingOf } from './run.ts'
import type { ToolSpec, WantedCall } from './run.ts'

/** How a tool counts; what `defineTool` says of one of ours. */
export interface ToolAction {
  /** `write` (the default): its intent is on disk before it happens, and it happens once. `read`: it may happen again. */
  readonly effect?: 'read' | 'write'
  /** It honours `idempotencyKey()` itself, so that after a crash it may be used again. */
  readonly idempotent?: boolean
  /** The arguments that make two calls the same action; all of them by default. */
  readonly identity?: readonly string[]
  /** `once` (the default for writes): an identical call in a run gets the first one's result. */
  readonly repeat?: 'once' | 'each'
  /** As `10s`; 30 minutes by default. */
  readonly timeout?: string
  /** Asks the world whether the action happened. */
  readonly probe?: (input: never, call: ProbeCall) => ProbeAnswer | PromiseLike<ProbeAnswer>
}

export interface ProbeCall {
  readonly key: string
  readonly signal: AbortSignal
}

export type AnyTools = Readonly<Record<string, SdkTool>>

/** A call of a tool, as the AI SDK makes it. */
export interface SdkCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
}

export interface ToolsOptions {
  readonly run: object | undefined
  readonly tools: AnyTools
  readonly actions: Readonly<Record<string, ToolAction | 'read' | 'write' | undefined>>
  readonly doubt: 'park' | 'tell'
  /** What the program itself says of a call. */
  readonly says: (call: SdkCall, options: object) => Promise<ProgramSays | undefined>
}

const keys = new AsyncLocalStorage<string>()

/** In a tool: the key of this call, the same for every try of it. */
export function idempotencyKey(): string {
  const key = keys.getStore()
  if (key !== undefined) return key
  throw new HoldfastError('usage/ai-sdk', 'there is no idempotency key here', {
    remedy: 'ask for it in the execute of a tool that durable() wrapped',
  })
}

/** Those that the AI SDK carries out here; others have their own way of being carried out. */
export const isOurs = (tool: SdkTool | undefined): tool is Executable =>
  typeof tool?.execute === 'function' && tool.type !== 'provider'

type Executable = SdkTool & { execute: (input: unknown, options: Options) => unknown }
type Options = ToolExecutionOptions<unknown>

/** The same tools, and each of their calls goes through the ledger. */
export function durableTools(options: ToolsOptions): AnyTools {
  const wrapped = Object.entries(options.tools).map(([name, tool]) => {
    if (!isOurs(tool)) return [name, tool]
    const { needsApproval: _, ...rest } = tool
    const work = async (input: unknown, given: Options, tell?: Tell) => {
      const loop = await loopOf(options.run)
      const call = { toolCallId: given.toolCallId, toolName: name, input }
      return revive(await loop.perform(await ownCall(options, loop, call, given, tell)))
    }
    const execute = (input: unknown, given: Options) =>
      tellsProgress(tool) ? withProgress((tell) => work(input, given, tell)) : work(input, given)
    return [name, { ...rest, execute }]
  })
  return Object.fromEntries(wrapped) as AnyTools
}

export async function ownCall(
  options: ToolsOptions,
  loop: OwnLoop,
  call: SdkCall,
  given: object,
  tell?: Tell,
): Promise<OwnCall> {
  const { step, specs } = wantingOf(loop, call.toolCallId)
  const { toolCallId: callId, toolName } = call
  return {
    callId,
    step,
    tool: asTool(options, loop, call, { spec: specs.get(toolName), options: given as Options, tell }),
    input: await asJson(options, loop, call),
    doubt: options.doubt,
    said: () => options.says(call, given),
  }
}

/**
 * Only JSON survives a crash; the tool itself gets what its schema made of it. Where that is more, as a Set is, what the model
 * wrote: the JSON form could be the same for two different calls, and a person would not see what is in them.
 */
async function asJson(
  { tools }: ToolsOptions,
  loop: OwnLoop,
  { toolCallId, toolName, input }: SdkCall,
): Promise<unknown> {
  if (isJson(input, hasJsonForm)) return JSON.parse(JSON.stringify(input ?? null))
  const written = wantingOf(loop, toolCallId).calls.find((call) => call.toolCallId === toolCallId)
  const read = written === undefined ? undefined : await readCall(tools, written)
  // The program may have repaired or refined it.
  if (read !== undefined && isDeepStrictEqual(read.input, input)) return jsonOf(written!)
  throw new HoldfastError('usage/ai-sdk', `the input of the tool "${toolName}" is not JSON, nor what the model wrote`, {
    remedy: 'let inputSchema make JSON of it, and make the rest in execute',
  })
}

/** Dates and addresses do. */
const hasJsonForm = (value: object) => 'toJSON' in value && typeof value.toJSON === 'function'

interface Given {
  readonly spec: ToolSpec | undefined
  readonly options: Options
  readonly tell: Tell | undefined
}

/** One call of it: the tool as the ledger knows tools. */
function asTool(
  given: ToolsOptions,
  loop: OwnLoop,
  { toolName: name, input }: SdkCall,
  { spec, options, tell }: Given,
): Tool {
  const own = given.actions[name] ?? {}
  const action = typeof own === 'string' ? { effect: own } : own
  const { effect = 'write', identity, idempotent = false, timeout, probe } = action
  const tool = given.tools[name] as Executable
  const work: FunctionTool = {
    name,
    effect,
    input: { jsonSchema: {} },
    ports: { warn: loop.warn },
    resultCharacters: LIMITS.stepCharacters,
    run: (_given, signal, { key }) =>
      keys.run(key, async () => kept(await lastOf(tool.execute(input, withSignal(options, signal)), tell))),
    ...(probe === undefined
      ? {}
      : {
          probe: async (_given: unknown, signal: AbortSignal, { key }) =>
            keptAnswer(await probe(input as never, { key, signal })),
        }),
  }
  const asking = work.probe === undefined ? undefined : { ...work, probe: work.probe }
  return {
    name,
    effect,
    description: spec?.description ?? '',
    inputSchema: spec?.inputSchema ?? {},
    repeat: action.repeat ?? (effect === 'write' ? 'once' : 'each'),
    timeoutMs: timeout === undefined ? TOOL_LIMITS.backstopMs : parseDuration(timeout),
    idempotent,
    identity: (known) => identityOf(known, identity),
    // The AI SDK has checked it.
    validate: (known) => ({ input: known }),
    perform: (known, context) => performWork(work, known, context),
    goesOn: (key) => Promise.resolve(isUnderWay(key)),
    ...(asking === undefined ? {} : { probe: (known, context) => askProbe(asking, known, context) }),
  }
}

const withSignal = (options: Options, signal: AbortSignal): Options => ({
  ...options,
  abortSignal: options.abortSignal === undefined ? signal : AbortSignal.any([options.abortSignal, signal]),
})

/** As the ledger keeps it. The AI SDK makes null of nothing. */
function kept(result: unknown): unknown {
  try {
    return result === undefined ? null : keep(result)
  } catch {
    // It goes round in a circle: whoever writes it down says so.
    return result
  }
}

/** What the world says it brought is kept as what the call itself would have brought. */
const keptAnswer = (answer: ProbeAnswer): ProbeAnswer =>
  // It is somebody's function: whoever reads the answer says if it is none.
  answer?.outcome === 'done' && answer.result !== undefined ? { ...answer, result: kept(answer.result) } : answer

/** Another call of the same reply, as the AI SDK will make it; undefined where it will not. */
export async function readCall(tools: AnyTools, call: WantedCall): Promise<SdkCall | undefined> {
  const { toolCallId, toolName } = call
  const tool = Object.hasOwn(tools, toolName) ? tools[toolName] : undefined
  if (!isOurs(tool)) return undefined
  try {
    const given = jsonOf(call)
    const checked = await asSchema(tool.inputSchema).validate?.(given)
    if (checked === undefined) return { toolCallId, toolName, input: given }
    return checked.success ? { toolCallId, toolName, input: checked.value } : undefined
  } catch {
    // Its arguments are no JSON: the model will be told so.
    return undefined
  }
}

const jsonOf = ({ input }: WantedCall): unknown => (input.trim() === '' ? {} : JSON.parse(input))
