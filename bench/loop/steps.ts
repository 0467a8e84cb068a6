import { join } from 'node:path'

import { systemClock as clock } from '../../src/base/clock.ts'
import { newAttemptId, newMessageId, newRunId, newWorkerId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { runAgent } from '../../src/loop/loop.ts'
import type { AskModel, Tool } from '../../src/loop/ports.ts'
import { callModel } from '../../src/model/call-model.ts'
import { scriptedModel } from '../../src/model/scripted.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'

const tool = (name: string, effect: 'read' | 'write'): [string, Tool] => [
  name,
  {
    name,
    description: name,
    inputSchema: { type: 'object' },
    effect,
    repeat: 'each',
    timeoutMs: 1_000,
    idempotent: true,
    identity: (input) => input,
    validate: (input) => ({ input }),
    perform: () => Promise.resolve({ kind: 'done', result: 'x'.repeat(200) }),
  },
]

/** What each step cost: the time from one model call to the next, and the processor's part of it. */
export interface StepCosts {
  readonly wallMs: readonly number[]
  readonly cpuMs: readonly number[]
}

/** One run of so many steps on a database of its own: a scripted model, a read and a write a step, nothing else. */
export async function costsOfSteps(folder: string, name: string, steps: number): Promise<StepCosts> {
  const store = await openSqliteStore({ path: join(folder, `${name}.db`), clock, random })
  try {
    const claim = await claimed(store)
    const [instants, processor]: [number[], number[]] = [[], []]
    const replies = Array.from({ length: steps }, (_, index) => ({
      text: `step ${index}`,
      toolCalls: [
        { tool: 'look', input: { page: index } },
        { tool: 'put', input: { page: index } },
      ],
    }))
    const model = scriptedModel({ replies: [...replies, { text: 'done' }] }, { clock })
    const ask: AskModel = async (request, options) => {
      instants.push(performance.now())
      const { user, system } = process.cpuUsage()
      processor.push((user + system) / 1_000)
      const asked = await callModel({ store, clock, random, warn: () => {} }, model, request, options)
      return asked.kind === 'failed' ? { ...asked, error: asked.error.message } : asked
    }
    const ports = {
      store,
      clock,
      random,
      agent: 'walker',
      system: '',
      policy: [],
      tools: new Map([tool('look', 'read'), tool('put', 'write')]),
      folders: { path: () => folder, prepare: () => Promise.resolve(), isThere: () => true },
      onAction: () => {},
      emit: () => {},
      ask,
      limits: { turns: steps + 1 },
      // So that it is the length of the history that is measured and not its summaries.
      contextTokens: 10_000_000,
    }
    const end = await runAgent(ports, claim, new AbortController().signal)
    if (end.kind !== 'finished' || end.outcome.state !== 'succeeded') throw new Error(JSON.stringify(end))
    return { wallMs: differences(instants), cpuMs: differences(processor) }
  } finally {
    await store.close()
  }
}

const differences = (values: readonly number[]) => values.slice(1).map((value, index) => value - values[index]!)

async function claimed(store: Store) {
  const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: 'walk' as ThreadId }
  await store.apply(sendMessage, { ...ids, agent: 'walker', text: 'walk', key: 'walk' })
  const workerId = newWorkerId(random)
  const identity = { host: 'bench', boot: 'b', pidNamespace: 'n', pid: 1, startTime: 1 }
  await store.apply(registerWorker, { id: workerId, kind: 'command', home: '/bench', identity })
  const attempt = { id: newAttemptId(random), mark: random.hex(16) }
  const claim = await store.apply(claimRun, { workerId, leaseMs: 3_600_000, limits: {}, attempt, agents: ['walker'] })
  if (claim === undefined) throw new Error('nothing to claim')
  return claim
}
