import { approvalOf } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { actionsOfRun } from '../../src/actions/action.ts'
import type { Leave, ObservedCall } from '../../src/actions/observed.ts'
import type { ActionId } from '../../src/base/ids.ts'
import { LIMITS } from '../../src/base/limits.ts'
import { askPerson } from '../../src/mcp/ask-person.ts'
import { sessionEnded, sessionStarted, turnBegun, turnStopped } from '../../src/sessions/events.ts'
import type { Heard } from '../../src/sessions/events.ts'
import { leaveAsked, leaveWithdrawn, toolEnded } from '../../src/sessions/permission.ts'
import { findSession } from '../../src/sessions/session.ts'
import { scenario } from './scenario.ts'
import type { Scenario, World } from './scenario.ts'

const heard: Heard = { client: 'claude', sessionId: 'asking', process: { pid: 7 } }
const back: Heard = { ...heard, process: { pid: 8 } }
const ACTION = 'act_asked' as ActionId

const call = (event: string, callId?: string): ObservedCall => ({
  id: ACTION,
  event,
  tool: 'Bash',
  effect: 'write',
  input: { command: 'pay' },
  version: 'claude in /',
  ...(callId === undefined ? {} : { callId }),
})

const leave = (waits: Leave['waits']): Leave => ({
  policy: [],
  isPolicyKnown: true,
  waits,
  expiresInMs: LIMITS.approvalMs,
})

async function inTurn(world: World): Promise<void> {
  await world.store.apply(sessionStarted, heard, 'startup')
  await world.store.apply(turnBegun, heard, 'p1')
}

async function asking(world: World, waits: 'deferred' | 'held'): Promise<string> {
  await inTurn(world)
  await world.store.apply(leaveAsked, heard, 'p1', call('e1', waits === 'held' ? undefined : 'c1'), leave(waits))
  const session = await world.store.read(findSession, 'claude:asking')
  const [action] = await world.store.read(actionsOfRun, session!.runId!)
  return action!.digest!
}

async function decided(world: World, kind: 'approve' | 'deny', waits: 'deferred' | 'held' = 'deferred') {
  const digest = await asking(world, waits)
  if (waits === 'deferred') await world.store.apply(sessionEnded, heard, 'other')
  await world.store.apply(decideApproval, approvalOf(ACTION), { kind, digest, by: 'ann', via: 'test' })
  return digest
}

async function resumed(world: World, kind: 'approve' | 'deny'): Promise<void> {
  await decided(world, kind)
  await world.store.apply(sessionStarted, back, 'resume')
}

const question = { ...call('e1'), callId: 'mcp-1', tool: 'ask_approval' }

/** Where its client is at, which asks a person through our server. */
async function placeOf(world: World) {
  await inTurn(world)
  const session = await world.store.read(findSession, 'claude:asking')
  return { runId: session!.runId!, threadId: session!.threadId, generation: 1, agent: 'claude' }
}

/** Of command-line agents that ask for leave. */
export const PERMISSION_SCENARIOS: readonly Scenario[] = [
  scenario({ leaveAsked }, 'for the first time', async (world) => {
    await inTurn(world)
    return [heard, 'p1', call('e1', 'c1'), leave('deferred')]
  }),
  ...(['approve', 'deny'] as const).map((kind) =>
    scenario({ leaveAsked }, `once more, after a person said ${kind}`, async (world) => {
      await resumed(world, kind)
      return [back, undefined, call('e2', 'c1'), leave('deferred')]
    }),
  ),
  scenario({ sessionEnded }, 'while a call of it waits for a person', async (world) => {
    await asking(world, 'deferred')
    return [heard, 'other']
  }),
  scenario({ decideApproval }, 'of a session whose client has ended', async (world) => {
    const digest = await asking(world, 'deferred')
    await world.store.apply(sessionEnded, heard, 'other')
    return [approvalOf(ACTION), { kind: 'approve' as const, digest, by: 'ann', via: 'test' }]
  }),
  scenario({ sessionStarted }, 'one that comes back for the answer', async (world) => {
    await decided(world, 'approve')
    return [{ ...back, ordinal: 9 }, 'resume' as const]
  }),
  scenario({ turnBegun }, 'by which a client goes on with what had waited', async (world) => {
    await resumed(world, 'approve')
    await world.store.apply(leaveAsked, back, undefined, call('e2', 'c1'), leave('deferred'))
    return [back, 'p2']
  }),
  scenario({ turnStopped }, 'after a call that a person approved', async (world) => {
    await resumed(world, 'approve')
    await world.store.apply(leaveAsked, back, undefined, call('e2', 'c1'), leave('deferred'))
    await world.store.apply(turnBegun, back, 'p2')
    return [back, { turn: 'p2', ordinal: 3, isActive: false, isPaused: false, deliveryId: 'd1' }]
  }),
  scenario({ sessionEnded }, 'after a call has begun that a person approved', async (world) => {
    await resumed(world, 'approve')
    await world.store.apply(leaveAsked, back, undefined, call('e2', 'c1'), leave('deferred'))
    return [back, 'other']
  }),
  scenario({ toolEnded }, 'of a call that a person approved', async (world) => {
    const digest = await decided(world, 'approve', 'held')
    await world.store.apply(leaveAsked, heard, 'p1', call('e1'), leave('held'))
    return [heard, { digest, callId: 'c1' }]
  }),
  scenario({ toolEnded }, 'of a call that was answered in the client', async (world) => {
    return [heard, { digest: await asking(world, 'held'), callId: 'c1' }]
  }),
  // Its turn was over, and it waited for a person; another hook of the same client asks about the call once more, and then it is done.
  scenario({ toolEnded }, 'of a call that was answered in the client after the turn had ended', async (world) => {
    const digest = await asking(world, 'deferred')
    await world.store.apply(sessionEnded, heard, 'other')
    await world.store.apply(leaveAsked, heard, 'p1', call('e2', 'c1'), leave('held'))
    return [heard, { digest, callId: 'c1' }]
  }),
  scenario({ askPerson }, 'for the first time', async (world) => [await placeOf(world), question, leave('held')]),
  ...(['approve', 'deny'] as const).map((kind) =>
    scenario({ askPerson }, `once more, after a person said ${kind}`, async (world) => {
      const place = await placeOf(world)
      await world.store.apply(askPerson, place, question, leave('held'))
      const [action] = await world.store.read(actionsOfRun, place.runId)
      await world.store.apply(decideApproval, approvalOf(ACTION), {
        kind,
        digest: action!.digest!,
        by: 'ann',
        via: 'test',
      })
      return [place, question, leave('held')]
    }),
  ),
  scenario({ leaveWithdrawn }, 'of a dialog that nobody answered', async (world) => {
    await asking(world, 'held')
    return [ACTION]
  }),
]
