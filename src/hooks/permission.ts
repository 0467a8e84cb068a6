import { subjectDigest } from '../actions/approval.ts'
import type { Leave, ObservedCall, Permission } from '../actions/observed.ts'
import { newActionId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { jsonText } from '../base/visible.ts'
import { claudeEffect } from '../clients/claude-tools.ts'
import type { Heard } from '../sessions/events.ts'
import { isAwaited, leaveAsked, toolEnded } from '../sessions/permission.ts'
import { NO_ANSWER } from './answer.ts'
import type { HookAnswer } from './answer.ts'
import { given } from './event.ts'
import type { HookEvent, ToolCall } from './event.ts'
import type { Listener } from './hear.ts'
import type { Told } from './told.ts'

type CallEvent = HookEvent & { readonly call: ToolCall }

/** A person's decision covers this client's tool in this folder, and no other. */
const versionOf = ({ client, cwd }: Heard) => `${client} in ${cwd ?? 'an unknown folder'}`

function callOf({ random }: Listener, told: Told, heard: Heard, { call }: CallEvent): ObservedCall {
  const { tool, input, callId } = call
  return {
    id: newActionId(random),
    event: told.id ?? random.id(),
    tool,
    input,
    effect: claudeEffect(tool),
    version: versionOf(heard),
    ...given({ callId }),
  }
}

/** In print mode the process ends and comes back; a subagent's could not. Elsewhere the client's own dialog is open. */
function waysOf({ isAttended = false }: Told, { name, call }: CallEvent): Leave['waits'] {
  if (isAttended) return name === 'PermissionRequest' ? 'held' : 'dialog'
  return name === 'PermissionRequest' || call.isNested ? 'told' : 'deferred'
}

type TellWaiting = (listener: Listener, heard: Heard, what: string) => Promise<void>

/** What a client is answered that asks for leave to use a tool. */
export async function permit(
  listener: Listener,
  told: Told,
  heard: Heard,
  event: CallEvent,
  tellWaiting: TellWaiting,
): Promise<HookAnswer> {
  const { store, policy, approvalMs = LIMITS.approvalMs } = listener
  const waits = waysOf(told, event)
  const leave: Leave = {
    policy: policy ?? [],
    isPolicyKnown: policy !== undefined,
    waits,
    // Held, it is open for as long as the client waits, and a little longer: who waits withdraws it.
    expiresInMs: waits === 'held' ? LIMITS.permissionHeldMs * 2 : approvalMs,
    ...given({ startedBy: told.startedBy }),
  }
  const permission = await store.apply(leaveAsked, heard, event.turn, callOf(listener, told, heard, event), leave)
  if (permission.kind === 'asked') {
    await tellWaiting(listener, heard, `it asks for leave to use ${event.call.tool}: ${permission.approval.id}`)
    if (waits === 'held')
      return { output: '', hold: { approvalId: permission.approval.id, actionId: permission.approval.actionId } }
  }
  return { output: encode(event.name, permission) }
}

/** In the client's words. Empty: it goes by its own rules. */
function encode(name: string, permission: Permission): string {
  const answer = name === 'PermissionRequest' ? requestAnswer(permission) : useAnswer(permission)
  return answer === undefined ? '' : jsonText({ hookSpecificOutput: { hookEventName: name, ...answer } })
}

function requestAnswer(permission: Permission): object | undefined {
  if (permission.kind === 'allowed') return { decision: { behavior: 'allow' } }
  return permission.kind === 'refused' ? { decision: { behavior: 'deny', message: permission.why } } : undefined
}

function useAnswer(permission: Permission): object | undefined {
  switch (permission.kind) {
    case 'allowed':
      return { permissionDecision: 'allow', permissionDecisionReason: `allowed by ${permission.by}` }
    case 'refused':
      return { permissionDecision: 'deny', permissionDecisionReason: permission.why }
    case 'asked':
      return { permissionDecision: 'defer', permissionDecisionReason: `waits for a person: ${permission.approval.id}` }
    case 'dialog':
      return { permissionDecision: 'ask', permissionDecisionReason: `Holdfast: ${permission.why}` }
    case 'no-opinion':
      return undefined
  }
}

/** Most calls were never asked for, and nothing is written for them. */
export async function settleCall({ store }: Listener, heard: Heard, { call }: HookEvent): Promise<HookAnswer> {
  if (call === undefined) return NO_ANSWER
  const { tool, input, callId } = call
  const end = { digest: subjectDigest({ tool, version: versionOf(heard), input }), ...given({ callId }) }
  if (await store.read(isAwaited, heard, end)) await store.apply(toolEnded, heard, end)
  return NO_ANSWER
}
