import { LIMITS } from '../../base/limits.ts'
import { harmlessVariables } from '../../base/variables.ts'
import type { Claim } from '../../runs/claim.ts'
import { takeForCommand } from '../../runs/command-turn.ts'
import type { CommandRequest } from '../../runs/run.ts'
import { textsOf } from '../../threads/delivery.ts'
import { pendingMessages } from '../../threads/message.ts'
import { keptSession } from '../../sessions/kept.ts'
import { findThread } from '../../threads/thread.ts'
import type { WorkspaceRequest } from '../../workspace/workspace.ts'
import { clientCommand } from './client-agent.ts'
import type { OpenClient } from './client-agent.ts'
import { executeClaim, finishClaim, refOf, untilStored } from '../execute.ts'
import type { Executor } from '../execute.ts'

/** An agent that is a program of its own: each run of it is one command, whose output is the reply. */
export interface CommandAgent {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  readonly cwd: string
  /** The variables that it gets besides the harmless ones. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  /** What its runs do to files: all of it, or nothing. */
  readonly workspace?: WorkspaceRequest
  /** It is a client that we know: what follows the program in its command is made for each turn. */
  readonly client?: OpenClient
}

export const PROMPT = '{prompt}'

/** Begins such a run: what waits in the inbox becomes the prompt. */
export async function executeCommandAgent(executor: Executor, claim: Claim, agent: CommandAgent): Promise<void> {
  const { store } = executor
  const pending = await store.read(pendingMessages, claim.run.threadId, LIMITS.messagesPerTurn)
  if (pending.length === 0) {
    return void (await finishClaim(executor, claim, { state: 'succeeded', result: { text: '' } }))
  }
  const shown = await store.read(textsOf, pending)
  const prompt = shown.map(({ text }) => text).join('\n\n')
  if (isTooLong(agent, prompt)) {
    const error = `the messages have ${Buffer.byteLength(prompt)} bytes, more than an argument may have; let the command read its standard input, without ${PROMPT}`
    const taken = shown.map(({ messageId }) => messageId)
    return void (await finishClaim(executor, claim, { state: 'failed', code: 'validation', error, taken }))
  }
  const asked = claim.run.request
  const settings = {
    timeoutMs: asked.timeoutMs ?? agent.timeoutMs,
    workspace: asked.workspace ?? agent.workspace,
  }
  const client = agent.client === undefined ? {} : await clientTurn(executor, claim, agent, agent.client)
  const request = { ...requestFor(agent, prompt, settings), ...client }
  const turn = await untilStored(executor, () => store.apply(takeForCommand, refOf(claim), shown, request))
  if (turn.kind === 'changed') return executeCommandAgent(executor, claim, agent)
  if (turn.kind === 'taken') await executeClaim(executor, { ...claim, run: turn.run })
}

/** In the session that the thread has with it, if there is one. */
async function clientTurn({ store }: Executor, { run, attempt }: Claim, agent: CommandAgent, client: OpenClient) {
  const generation = (await store.read(findThread, run.threadId))?.generation ?? 1
  const kept = await store.read(keptSession, { threadId: run.threadId, generation, agent: agent.name })
  return clientCommand(agent.command[0], client, attempt.id, kept)
}

const takesArgument = ({ command }: CommandAgent) => command.some((word) => word.includes(PROMPT))

const isTooLong = (agent: CommandAgent, prompt: string) =>
  takesArgument(agent) && Buffer.byteLength(prompt) > LIMITS.argumentBytes

interface Asked {
  readonly timeoutMs: number | undefined
  readonly workspace: WorkspaceRequest | undefined
}

function requestFor(agent: CommandAgent, prompt: string, { timeoutMs, workspace }: Asked): CommandRequest {
  const [program, ...args] = agent.command
  return {
    kind: 'command',
    argv: [program, ...args.map((word) => word.replaceAll(PROMPT, () => prompt))],
    cwd: agent.cwd,
    env: agent.env,
    ...(takesArgument(agent) ? {} : { input: prompt }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(workspace === undefined ? {} : { workspace }),
  }
}

/** The variables of such an agent: harmless ones, and those that its configuration names. */
export function agentVariables(env: Readonly<Record<string, string | undefined>>, names: readonly string[]) {
  const named = names.map((name) => [name, env[name]] as const)
  const there = named.filter((entry): entry is readonly [string, string] => entry[1] !== undefined)
  return { ...harmlessVariables(env), ...Object.fromEntries(there) }
}
