/** Runs that take one step at a time, when they are told to: so that long ones and short ones can take turns. */
import { newAttemptId, newMessageId, newRunId, newWorkerId } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { createRuntime, defineFunction } from '../../src/index.ts'
import type { FunctionRun } from '../../src/index.ts'
import { runAgent } from '../../src/loop/loop.ts'
import type { AskModel, ModelReply, Tool } from '../../src/loop/ports.ts'
import { callModel } from '../../src/model/call-model.ts'
import { NO_USAGE } from '../../src/loop/usage.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import type { Runtime } from '../../src/runtime.ts'
import { openProduct } from '../product.ts'
import type { Home } from '../product.ts'

export interface Walker {
  /** One step, and what it took, in ms. */
  step(): Promise<number>
}

export interface Walking {
  walker(name: string): Promise<Walker>
  close(): Promise<void>
}

/** One side waits for a step to be wanted, the other for it to be over. */
class Turnstile {
  #open: ((goOn: boolean) => void) | undefined
  #arrived: (() => void) | undefined

  /** Called by the run, before each step; false: there is none. */
  pass(): Promise<boolean> {
    this.#arrived?.()
    return new Promise((resolve) => (this.#open = resolve))
  }

  /** Lets one step happen; resolves when the run stands before the next. */
  async turn(): Promise<number> {
    const arrived = new Promise<void>((resolve) => (this.#arrived = resolve))
    const from = performance.now()
    this.#open?.(true)
    await arrived
    return performance.now() - from
  }

  end(): void {
    this.#open?.(false)
  }

  arrival(): Promise<void> {
    return new Promise((resolve) => (this.#arrived = resolve))
  }
}

/** Calls of a function, through the public library: each step is a write, with its intent on disk before it. */
export async function walkFunctions({ home, store }: Home): Promise<Walking> {
  const stiles = new Map<string, Turnstile>()
  const walk = defineFunction('walk', async (run: FunctionRun<string>) => {
    const stile = stiles.get(run.input)!
    for (let step = 1; await stile.pass(); step += 1) await run.step(`s${step}`, () => ({ ok: step }))
  })
  const runtime = await createRuntime({ home, agents: [walk], ...(store === undefined ? {} : { store }) })
  await runtime.start()
  const ends: Promise<unknown>[] = []
  return {
    async walker(name) {
      const stile = new Turnstile()
      stiles.set(name, stile)
      const ready = stile.arrival()
      ends.push((await runtime.call({ function: 'walk', input: name })).result())
      await ready
      return { step: () => stile.turn() }
    },
    async close() {
      for (const stile of stiles.values()) stile.end()
      await Promise.all(ends)
      await runtime.close()
    },
  }
}

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

const repliesThrough = (stile: Turnstile) => {
  let replies = 0
  return async (): Promise<ModelReply> => {
    await stile.pass()
    replies += 1
    const call = (name: string) => ({ id: `${name}${replies}`, tool: name, input: { page: replies } })
    return { text: `step ${replies}`, toolCalls: [call('look'), call('put')], usage: NO_USAGE, finish: 'tool-calls' }
  }
}

/** Agents in their loop: a step is one reply of the model with a read and a write in it. */
export async function walkAgents(home: Home, prompt = 'walk'): Promise<Walking> {
  const runtime = await openProduct(home.home, home.store)
  const { store, clock, random } = runtime
  return {
    async walker(name) {
      const stile = new Turnstile()
      const ready = stile.arrival()
      const model = { id: 'walking', quota: 'walking', generate: repliesThrough(stile) }
      const ask: AskModel = async (request, options) => {
        const asked = await callModel({ store, clock, random, warn: () => {} }, model, request, options)
        return asked.kind === 'failed' ? { ...asked, error: asked.error.message } : asked
      }
      const ports = {
        store,
        clock,
        random,
        agent: 'walker',
        system: '',
        policy: [{ decision: 'allow' as const }],
        tools: new Map([tool('look', 'read'), tool('put', 'write')]),
        folders: { path: () => home.home, prepare: () => Promise.resolve(), isThere: () => true },
        onAction: () => {},
        emit: () => {},
        ask,
        limits: { turns: 1_000_000 },
        // So that it is the length of the history that is measured and not its summaries.
        contextTokens: 1_000_000_000,
      }
      const claim = await claimed(runtime, name, prompt)
      void runAgent(ports, claim, new AbortController().signal).then((end) => {
        throw new Error(`a walker ended: ${JSON.stringify(end)}`)
      })
      await ready
      return { step: () => stile.turn() }
    },
    // They stand before their next step and hold nothing but memory.
    close: () => runtime.close(),
  }
}

async function claimed({ store, random }: Runtime, thread: string, text: string) {
  const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: thread as ThreadId }
  await store.apply(sendMessage, { ...ids, agent: 'walker', text, key: 'walk' })
  const workerId = newWorkerId(random)
  const identity = { host: 'bench', boot: 'b', pidNamespace: 'n', pid: 1, startTime: 1 }
  await store.apply(registerWorker, { id: workerId, kind: 'command', home: '/bench', identity })
  const attempt = { id: newAttemptId(random), mark: random.hex(16) }
  const claim = await store.apply(claimRun, { workerId, leaseMs: 3_600_000, limits: {}, attempt, agents: ['walker'] })
  if (claim === undefined) throw new Error('nothing to claim')
  return claim
}
