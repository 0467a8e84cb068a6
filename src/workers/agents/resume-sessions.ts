import { basename } from 'node:path'

import { newRunId } from '../../base/ids.ts'
import type { Randomness, RunId } from '../../base/ids.ts'
import { LIMITS } from '../../base/limits.ts'
import { findRun } from '../../runs/run.ts'
import { submitRun } from '../../runs/submit.ts'
import { resumeKey, sessionsAway } from '../../sessions/away.ts'
import type { Store } from '../../store/store.ts'
import { PROMPT } from './command-agent.ts'
import type { CommandAgent } from './command-agent.ts'
import { resumeCommand } from './client-agent.ts'
import type { AnyAgent } from './execute-agent.ts'

export interface Resumer {
  readonly store: Store
  readonly random: Randomness
  readonly agents: ReadonlyMap<string, AnyAgent>
}

/**
 * A client that had ended because a call of it waited for a person goes on once that is decided, if it was a run of an agent
 * of ours: then we know how it is started. Once for each call; the others are resumed by whoever started them.
 */
export async function resumeSessions({ store, random, agents }: Resumer): Promise<void> {
  for (const { sessionId, client, actionId, body } of await store.read(sessionsAway, LIMITS.page)) {
    const run = body.startedBy === undefined ? undefined : await store.read(findRun, body.startedBy as RunId)
    const agent = run === undefined ? undefined : agents.get(run.agent)
    if (run === undefined || agent === undefined || !('command' in agent) || !isClient(agent, client)) continue
    const { threadId, parentThreadId } = run
    await store.apply(submitRun, {
      id: newRunId(random),
      threadId,
      agent: agent.name,
      key: resumeKey(actionId),
      request: requestFor(agent, sessionId),
      ...(parentThreadId === null ? {} : { parentThreadId }),
    })
  }
}

const isClient = ({ command, client: known }: CommandAgent, client: string) =>
  client === 'claude' && (known?.settings.name ?? basename(command[0])) === client

/** As it was started, and without a prompt: then the client goes on with the call that had waited. */
function requestFor({ command, client, cwd, env, timeoutMs }: CommandAgent, sessionId: string) {
  const [program, ...args] = command
  const argv = [program, ...args.filter((word) => !word.includes(PROMPT)), '--resume', sessionId] as const
  return {
    kind: 'command',
    ...(client === undefined ? { argv } : resumeCommand(program, client, sessionId)),
    cwd,
    env,
    isTurn: true,
    input: '',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  } as const
}
