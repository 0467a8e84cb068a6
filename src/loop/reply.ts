import { judge } from '../actions/policy.ts'
import type { Judged, PolicyRule, Verdict } from '../actions/policy.ts'
import type { NewAction } from '../actions/propose.ts'
import { signatureOf } from '../actions/signature.ts'
import { describeError } from '../base/errors.ts'
import { newActionId } from '../base/ids.ts'
import type { Randomness, ThreadId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import type { ModelReply, Tool, ToolCall } from './ports.ts'
import { versionOf } from './version.ts'

/** What the model is told when its reply is of no use as it is; the conversation goes on from there. */
const NOTES = {
  truncated: 'Your reply was cut off by its length limit. Go on exactly where it stopped; do not begin again.',
  empty: 'Your reply was empty. Answer, or use a tool.',
} as const

const CUT_OFF =
  'the reply was cut off by its length limit, so none of its calls was carried out; make them again, with less in each'

export const isEmpty = ({ text, toolCalls }: Pick<ModelReply, 'text' | 'toolCalls'>) =>
  text.trim() === '' && toolCalls.length === 0

/**
 * What the model is told, as long as there may be one more of its kind. Calls that were cut off need no note: each gets its
 * result, which says so.
 */
export function noteOn(reply: ModelReply, more: Readonly<Record<keyof typeof NOTES, boolean>>): string | undefined {
  const kind = isEmpty(reply) ? 'empty' : reply.finish === 'length' ? 'truncated' : undefined
  return kind !== undefined && reply.toolCalls.length === 0 && more[kind] ? NOTES[kind] : undefined
}

/** The reply as it is kept and shown from now on. */
export function kept({ text, toolCalls, finish, usage }: ModelReply) {
  const contextTokens = usage.inputTokens + usage.outputTokens
  return {
    text,
    toolCalls: toolCalls.map(presentable),
    ...(finish === 'length' ? { finish } : {}),
    ...(usage.inputTokens === 0 ? {} : { contextTokens }),
  }
}

/**
 * Providers refuse a conversation with arguments that are not an object, and one with a megabyte of them in it is paid
 * for at every call: of such arguments only the beginning stays.
 */
function presentable(call: ToolCall): ToolCall {
  const { id, tool, input } = call
  const size = sizeOf(input)
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
  if (isObject && size <= LIMITS.argumentCharacters) return { id, tool, input }
  const text = typeof input === 'string' ? input : (JSON.stringify(input) ?? '')
  return { id, tool, input: { unusable: `${text.slice(0, LIMITS.unusableCharacters)}… (${size} characters)` } }
}

const sizeOf = (input: unknown): number => (JSON.stringify(input) ?? '').length

export interface Proposer {
  readonly random: Randomness
  readonly agent: string
  readonly policy: readonly PolicyRule[]
  /** How long a person has to answer. */
  readonly approvalMs?: number
  readonly tools: ReadonlyMap<string, Tool>
}

/** What is wrong with a call becomes its result, in words for the model; nothing else is touched by it. */
export function proposalFor(
  ports: Proposer,
  call: ToolCall,
  finish: ModelReply['finish'],
  { rules, thread }: { readonly rules: readonly PolicyRule[]; readonly thread: ThreadId },
): NewAction {
  const { id: callId, tool: name } = call
  const tool = ports.tools.get(name)
  const common = { id: newActionId(ports.random), mark: ports.random.hex(15), callId, tool: name }
  const repeats = tool?.repeat ?? 'each'
  const checked = checkedCall(ports.tools, call, finish)
  if ('wrong' in checked) {
    const { input } = presentable(call)
    const signature = signatureOfText(call)
    return { ...common, effect: tool?.effect ?? 'read', repeats, input, signature, wrong: checked.wrong }
  }
  const { input, signature, effect } = checked
  const judged = { tool: name, effect, agent: ports.agent, thread, input }
  return {
    ...common,
    effect,
    repeats,
    input,
    signature,
    version: versionOf(tool),
    ...(tool?.once === undefined ? {} : { window: { agent: ports.agent, once: tool.once } }),
    verdict: verdictOn(tool, [...ports.policy, ...rules], judged),
    ...(ports.approvalMs === undefined ? {} : { expiresInMs: ports.approvalMs }),
  }
}

/** Where no rule says anything, a yes that was given beforehand counts. */
function verdictOn(tool: Tool | undefined, rules: readonly PolicyRule[], call: Judged): Verdict {
  const verdict = judge(rules, call)
  const agreed = verdict.via === 'default' ? tool?.agreedBy?.(call.input) : undefined
  return agreed === undefined ? verdict : { kind: 'allow', ...agreed }
}

type Checked =
  | { readonly input: unknown; readonly signature: string; readonly effect: Tool['effect'] }
  | { readonly wrong: string }

function checkedCall(tools: ReadonlyMap<string, Tool>, call: ToolCall, finish: ModelReply['finish']): Checked {
  if (finish === 'length') return { wrong: CUT_OFF }
  const size = sizeOf(call.input)
  if (size > LIMITS.argumentCharacters)
    return { wrong: `its arguments have ${size} characters, ${LIMITS.argumentCharacters} at most; send less at once` }
  const tool = tools.get(call.tool)
  if (tool === undefined) {
    const known = [...tools.keys()].toSorted().join(', ')
    return { wrong: `there is no tool "${call.tool}"; there are: ${known === '' ? 'none' : known}` }
  }
  const valid = tool.validate(call.input)
  return 'error' in valid ? { wrong: valid.error } : signed(tool, valid.input)
}

function signed(tool: Tool, input: unknown): Checked {
  try {
    return { input, signature: signatureOf(tool.name, tool.identity(input)), effect: effectOfCall(tool, input) }
  } catch (error) {
    // Half a character, for one: JSON can carry it, its canonical form cannot.
    return { wrong: describeError(error) }
  }
}

export const effectOfCall = (tool: Tool, input: unknown): Tool['effect'] => tool.effectOf?.(input) ?? tool.effect

/** A call as a person wants it instead: by the same checks as the model's own, and of the tool as it is now. */
export function checkEdit(tool: Tool, input: unknown): CheckedEdit | { readonly wrong: string } {
  const checked = checkedCall(new Map([[tool.name, tool]]), { id: '', tool: tool.name, input }, 'tool-calls')
  return 'wrong' in checked ? checked : { ...checked, version: versionOf(tool) }
}

export interface CheckedEdit {
  readonly input: unknown
  readonly signature: string
  readonly effect: Tool['effect']
  readonly version: string
}

/** Of a call that is never performed: so that the same mistake made again is known to be the same. */
const signatureOfText = ({ tool, input }: ToolCall) => signatureOf(tool, JSON.stringify(input ?? null))

/**
 * Names become columns and sentences: not endless, and without what a database refuses in a text. In this order: the cut can
 * leave half of a character, which no signature can be made of.
 */
const named = (name: string) => name.slice(0, LIMITS.nameLength).toWellFormed().replaceAll('\0', '\ufffd')

export const readable = (reply: ModelReply): ModelReply => ({
  ...reply,
  toolCalls: reply.toolCalls.map(({ id, tool, input }) => ({ id: named(id), tool: named(tool), input })),
})
