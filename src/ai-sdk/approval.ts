import type { ModelMessage, ToolApprovalStatus } from 'ai'

import type { ProgramSays } from '../define/own-loop.ts'
import { loopOf, wantingOf } from './run.ts'
import { isOurs, ownCall, readCall } from './tools.ts'
import type { AnyTools, SdkCall, ToolsOptions } from './tools.ts'

/** What the AI SDK tells a function that is to say whether a call may be carried out. */
export interface ApprovalQuestion {
  readonly toolCall: SdkCall
  readonly tools?: unknown
  readonly toolsContext?: unknown
  readonly runtimeContext?: unknown
  readonly messages: ModelMessage[]
}

type Approve = (question: ApprovalQuestion) => PromiseLike<ToolApprovalStatus> | ToolApprovalStatus
type ApproveOne = (input: unknown, options: object) => PromiseLike<ToolApprovalStatus> | ToolApprovalStatus

/** `toolApproval` as a program writes it: a function for all tools, or something for each. */
export type AnyApproval = Approve | Readonly<Record<string, ToolApprovalStatus | ApproveOne>>

/** Asked by the AI SDK before each call. Where a person has to say something the run is parked, and comes back with what was said. */
export function durableApproval(options: ToolsOptions, theirs: AnyApproval | undefined) {
  return async (question: ApprovalQuestion): Promise<ToolApprovalStatus> => {
    const { toolCall } = question
    if (!isOurs(options.tools[toolCall.toolName])) return statusOf(theirs, options.tools, toolCall, question)
    const loop = await loopOf(options.run)
    const others = async () => {
      const { calls } = wantingOf(loop, toolCall.toolCallId)
      const rest = calls.filter(({ toolCallId }) => toolCallId !== toolCall.toolCallId)
      const read = await Promise.all(rest.map((call) => readCall(options.tools, call)))
      return Promise.all(read.flatMap((call) => (call === undefined ? [] : [ownCall(options, loop, call, question)])))
    }
    const standing = await loop.standing(await ownCall(options, loop, toolCall, question), others)
    const { kind, by } = standing
    if (kind === 'allowed') return by === 'rule' ? 'not-applicable' : 'approved'
    const reason = by === 'program' ? standing.why.slice(BY_PROGRAM.length) : standing.why
    return { type: 'denied', ...(reason === '' ? {} : { reason }) }
  }
}

/** So the ledger names it; the program itself gets back what it said. */
const BY_PROGRAM = 'toolApproval: '

/** What the program says of a call, in our words. */
export const programSays =
  (theirs: AnyApproval | undefined, tools: AnyTools) =>
  async (call: SdkCall, given: object): Promise<ProgramSays | undefined> => {
    const status = await statusOf(theirs, tools, call, given as ApprovalQuestion)
    const { type, reason } = typeof status === 'object' ? status : { type: status, reason: undefined }
    const why = reason === undefined ? 'toolApproval' : `${BY_PROGRAM}${reason}`
    if (type === 'approved') return { kind: 'allow', why }
    if (type === 'denied') return { kind: 'deny', why }
    return type === 'user-approval' ? { kind: 'ask', why } : undefined
  }

/** By the rules of the AI SDK: what was said for the call comes before what the tool says of itself. */
async function statusOf(
  theirs: AnyApproval | undefined,
  tools: AnyTools,
  toolCall: SdkCall,
  given: ApprovalQuestion,
): Promise<ToolApprovalStatus> {
  const { toolCallId, toolName, input } = toolCall
  if (typeof theirs === 'function') return theirs({ ...given, toolCall })
  const own = theirs !== undefined && Object.hasOwn(theirs, toolName) ? theirs[toolName] : undefined
  const { messages, runtimeContext } = given
  const context = contextOf(given, toolName)
  if (typeof own === 'function') return own(input, { toolCallId, messages, toolContext: context, runtimeContext })
  if (own !== undefined) return own
  const needs = tools[toolName]?.needsApproval
  const asks = typeof needs === 'function' ? await needs(input, { toolCallId, messages, context }) : needs
  return asks === true ? 'user-approval' : undefined
}

const contextOf = ({ toolsContext }: ApprovalQuestion, tool: string): unknown =>
  (toolsContext as Readonly<Record<string, unknown>> | undefined)?.[tool]
