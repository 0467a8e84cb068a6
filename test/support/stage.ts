import { actionsOfRun } from '../../src/actions/action.ts'
import type { OnceWindow } from '../../src/actions/window.ts'
import type { PolicyRule } from '../../src/actions/policy.ts'
import { systemClock } from '../../src/base/clock.ts'
import { newActionId, newAttemptId, newMessageId, newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ActionId, RunId, ThreadId } from '../../src/base/ids.ts'
import { signatureOf } from '../../src/actions/signature.ts'
import { versionOf } from '../../src/loop/version.ts'
import { recordTurn } from '../../src/runs/turn.ts'
import type { RunLimits } from '../../src/loop/limits.ts'
import { runAgent } from '../../src/loop/loop.ts'
import type { LoopEnd } from '../../src/loop/loop.ts'
import type { Asked, ModelReply, ModelRequest, ModelUsage, Tool, ToolOutcome } from '../../src/loop/ports.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { finishRun } from '../../src/runs/finish.ts'
import { takeOverRun } from '../../src/runs/recover.ts'
import { sendMessage } from '../../src/runs/send.ts'
import type { Store } from '../../src/store/store.ts'
import { LEASE_MS, addWorker } from './world.ts'

export const nothing: ModelUsage = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }
export const usage: ModelUsage = { inputTokens: 10, outputTokens: 5, costMicrousd: 100 }

export interface StagedReply {
  readonly text?: string
  readonly calls?: readonly (readonly [tool: string, input: unknown])[]
  readonly finish?: ModelReply['finish']
  readonly usage?: ModelUsage
}

export const replied = (text: string, spent: ModelUsage = usage): Asked => ({
  kind: 'replied',
  reply: { text, toolCalls: [], usage: spent, finish: 'stop' },
  spent,
})

/** A world of one thread: a script of replies, tools that count what they did, and everything that the model was shown. */
export class Stage {
  readonly store: Store
  readonly effects: string[] = []
  readonly asked: ModelRequest[] = []
  readonly asides: ModelRequest[] = []
  threadId = 'conversation' as ThreadId
  replies: readonly StagedReply[] = []
  /** What a turn is answered with instead of the script, if it says anything. */
  answer: (request: ModelRequest) => Promise<Asked> | undefined = () => undefined
  aside: (request: ModelRequest) => Promise<Asked> = () => Promise.resolve(replied('In short: much was done.'))
  policy: PolicyRule[] = [{ decision: 'allow' }]
  doubts: 'park' | 'tell' = 'tell'
  limits: Partial<RunLimits> = {}
  contextTokens: number | undefined
  perform: (entry: string) => Promise<ToolOutcome> = (entry) =>
    Promise.resolve({ kind: 'done', result: `did ${entry}` })
  recover: NonNullable<Tool['recover']> | undefined
  probe: NonNullable<Tool['probe']> | undefined
  idempotent = false
  /** Who lost the run and could still do what he had begun. */
  rival: () => Promise<string | undefined> = () => Promise.resolve(undefined)
  /** Besides its own. */
  extra: readonly Tool[] = []
  /** Of `append`: once across runs. */
  once: OnceWindow | undefined

  constructor(store: Store) {
    this.store = store
  }

  send(text: string, key = text) {
    const ids = { messageId: newMessageId(random), runId: newRunId(random) }
    return this.store.apply(sendMessage, { ...ids, threadId: this.threadId, agent: 'clerk', text, key })
  }

  async claim(): Promise<Claim> {
    const workerId = await addWorker(this.store)
    const attempt = { id: newAttemptId(random), mark: random.hex(16) }
    const claim = await this.store.apply(claimRun, {
      workerId,
      leaseMs: LEASE_MS,
      limits: {},
      attempt,
      agents: ['clerk'],
    })
    if (claim === undefined) throw new Error('nothing to claim')
    return claim
  }

  async takeOver({ run, attempt }: Claim): Promise<Claim> {
    const taker = { workerId: await addWorker(this.store), leaseMs: LEASE_MS, attemptId: newAttemptId(random) }
    const held = { id: attempt.id, runId: run.id, fence: run.fence, mark: attempt.mark }
    return (await this.store.apply(takeOverRun, held, 'owner-dead', taker))!
  }

  run(claim: Claim, signal = new AbortController().signal): Promise<LoopEnd> {
    const ports = {
      store: this.store,
      clock: systemClock,
      random,
      agent: 'clerk',
      system: 'You keep the ledger.',
      policy: this.policy,
      doubts: this.doubts,
      limits: this.limits,
      ...(this.contextTokens === undefined ? {} : { contextTokens: this.contextTokens }),
      tools: new Map([
        this.#tool('append', 'write', 'once'),
        this.#tool('shout', 'write', 'each'),
        this.#tool('look', 'read', 'each'),
        ...this.extra.map((tool): [string, Tool] => [tool.name, tool]),
      ]),
      folders: { path: () => '/nowhere', prepare: () => Promise.resolve(), isThere: () => true },
      whoCouldStill: () => this.rival(),
      onAction: () => {},
      emit: () => {},
      ask: (request: ModelRequest) => this.#ask(request),
    }
    return runAgent(ports, claim, signal)
  }

  async finished(claim: Claim) {
    const end = await this.run(claim)
    if (end.kind !== 'finished') throw new Error(`it ended as ${end.kind}`)
    const ref = { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence }
    await this.store.apply(finishRun, ref, end.outcome)
    return end.outcome
  }

  #ask(request: ModelRequest): Promise<Asked> {
    if (request.purpose === 'side') {
      this.asides.push(request)
      return this.aside(request)
    }
    this.asked.push(request)
    return this.answer(request) ?? this.#fromScript(request)
  }

  #fromScript(request: ModelRequest): Promise<Asked> {
    const next = this.replies[request.replies]
    if (next === undefined)
      return Promise.resolve({ kind: 'failed', code: 'model', error: 'beyond the script', spent: nothing })
    const toolCalls = (next.calls ?? []).map(([tool, input], index) => ({
      id: `call_${request.replies}_${index}`,
      tool,
      input,
    }))
    const finish = next.finish ?? (toolCalls.length === 0 ? 'stop' : 'tool-calls')
    const spent = next.usage ?? usage
    const reply = { text: next.text ?? '', toolCalls, usage: spent, finish }
    return Promise.resolve({ kind: 'replied', reply, spent })
  }

  /** As a run has it. */
  tool(name: 'append' | 'shout'): Tool {
    return this.#tool(name, 'write', name === 'append' ? 'once' : 'each')[1]
  }

  #tool(name: string, effect: 'read' | 'write', repeat: 'once' | 'each'): [string, Tool] {
    const perform = async (input: unknown) => {
      const { entry } = input as { entry: string }
      const outcome = await this.perform(entry)
      if (outcome.kind === 'done') this.effects.push(entry)
      return outcome
    }
    const validate = (input: unknown) =>
      typeof (input as { entry?: unknown } | null)?.entry === 'string' ? { input } : { error: 'entry: is required' }
    const identity = (input: unknown) => (input as { entry: string }).entry
    const { recover, probe, idempotent, once } = this
    const optional = {
      ...(recover === undefined ? {} : { recover }),
      ...(probe === undefined ? {} : { probe }),
      ...(once === undefined || repeat === 'each' ? {} : { once }),
    }
    const about = { name, description: name, inputSchema: {}, effect, repeat, timeoutMs: 1_000, idempotent }
    return [name, { ...about, identity, validate, perform, ...optional }]
  }

  /** Records a reply with one call of `append`, and nothing of it is begun. */
  async propose(claim: Claim, entry: string): Promise<ActionId> {
    const tool = this.tool('append')
    const id = newActionId(random)
    const turn = {
      generation: 1,
      shown: [],
      reply: { text: '', toolCalls: [] },
      usage: nothing,
      actions: [
        {
          id,
          mark: random.hex(15),
          callId: id,
          tool: 'append',
          effect: 'write',
          repeats: 'once',
          input: { entry },
          signature: signatureOf('append', tool.identity({ entry })),
          version: versionOf(tool),
          verdict: { kind: 'allow', by: 'a rule', via: 'configuration' },
        },
      ],
    } as const
    const ref = { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence }
    const recorded = await this.store.apply(recordTurn, ref, turn)
    if (recorded.kind !== 'recorded') throw new Error(recorded.kind)
    return id
  }

  actions = async (claim: Claim) => this.store.read(actionsOfRun, claim.run.id)

  actionsOf = (runId: RunId) => this.store.read(actionsOfRun, runId)
}

export const results = ({ messages }: ModelRequest) =>
  messages.filter(({ role }) => role === 'tool').map((message) => (message as { text: string }).text)
