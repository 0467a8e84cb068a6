import { AsyncLocalStorage } from 'node:async_hooks'

import { findAction } from '../../actions/action.ts'
import type { Action } from '../../actions/action.ts'
import { isUndecided } from '../../actions/await.ts'
import { judge } from '../../actions/policy.ts'
import type { PolicyRule, Verdict } from '../../actions/policy.ts'
import { proposeOwn } from '../../actions/propose-own.ts'
import type { NewAction } from '../../actions/propose.ts'
import { rulesInForce } from '../../actions/rule.ts'
import { signatureOf } from '../../actions/signature.ts'
import { actionIdOf } from '../../actions/step-doubt.ts'
import { afterThisTurn } from '../../base/clock.ts'
import { canonicalJson } from '../../base/canonical-json.ts'
import type { ActionId, Randomness, RunId } from '../../base/ids.ts'
import { CallNotDone } from '../../define/own-loop.ts'
import type { Answered, OwnCall, OwnLoop, ProgramSays, Question, Standing } from '../../define/own-loop.ts'
import { Stopped, settleActions } from '../../loop/act.ts'
import type { ActPorts } from '../../loop/act.ts'
import { effectOfCall } from '../../loop/reply.ts'
import { versionOf } from '../../loop/version.ts'
import { entriesOfRun } from '../../threads/conversation.ts'
import { refOfCall } from '../../runs/call.ts'
import type { ClaimedCall } from '../../runs/call.ts'
import type { StepsRef } from '../../runs/step.ts'
import type { FunctionAgent } from './calls.ts'
import { foldersIn } from '../agents/execute-agent.ts'
import type { Executor } from '../execute.ts'
import { untilStored } from '../execute.ts'
import type { RecordedRun } from './function-run.ts'
import { askForLoop } from './own-question.ts'
import { endRivals } from '../rivals.ts'

export interface OwnLoopPorts {
  readonly executor: Executor
  readonly call: ClaimedCall
  readonly run: RecordedRun
  readonly agent: FunctionAgent
  readonly random: Randomness
}

/** The calls that are under way around this one: a tool may be a loop itself. */
const within = new AsyncLocalStorage<readonly ActionId[]>()

/**
 * What a loop inside of a function does, through the ledger. The function begins anew whenever its run goes on, and comes to the
 * same questions and the same calls again: each is answered by what is recorded, or goes on where it was.
 */
export class RunLoop implements OwnLoop {
  readonly runId: RunId
  readonly signal: AbortSignal
  readonly warn: (message: string) => void
  readonly #ports: OwnLoopPorts
  readonly #ref: StepsRef
  /** Calls that are being carried out, and how to say that nobody waits for them. */
  readonly #atWork = new Map<ActionId, () => void>()
  readonly #whenLess: (() => void)[] = []
  /** Where the answers are in the conversation. Those of earlier attempts are looked up when one of their calls is new. */
  readonly #entries = new Map<string, number>()
  #knowsEntries = false
  /** Writes go one after the other, in the order in which they are called for; so do proposals. */
  #writes: Promise<unknown> = Promise.resolve()
  #proposals: Promise<unknown> = Promise.resolve()

  constructor(ports: OwnLoopPorts) {
    this.runId = ports.call.id
    this.signal = ports.run.signal
    this.warn = ports.executor.warn
    this.#ports = ports
    this.#ref = refOfCall(ports.call)
  }

  ask(question: Question): Promise<Answered> {
    const ports = { ...this.#ports, ref: this.#ref, entries: this.#entries }
    return askForLoop(ports, question, placeOf(within.getStore()))
  }

  async standing(call: OwnCall, others: () => Promise<readonly OwnCall[]>): Promise<Standing> {
    const action = await this.#propose(call)
    // What is allowed is heard of when it is performed.
    if (action.state === 'waiting' || isRefused(action)) this.#ports.agent.watch?.heard({ kind: 'action', action })
    if (action.state === 'waiting') {
      // So that a person is asked about all of them at once.
      for (const other of await others()) await this.#propose(other)
      return this.#waitForPerson()
    }
    const { decision, error } = action
    const by = whoSaid(decision?.via)
    if (isRefused(action)) return { kind: 'denied', by, why: (by === 'program' ? decision?.by : error) ?? action.state }
    return { kind: 'allowed', by }
  }

  async perform(call: OwnCall): Promise<unknown> {
    const proposed = await this.#propose(call)
    const around = within.getStore() ?? []
    const work = () => this.#carryOut(call, proposed, around)
    // One inside of another would wait for itself.
    const settled = proposed.effect === 'write' && around.length === 0 ? await this.#inTurn(work) : await work()
    return this.#answer(call, settled)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#writes.then(work, work)
    this.#writes = mine.catch(() => {})
    return mine
  }

  async #carryOut(call: OwnCall, action: Action, around: readonly ActionId[]): Promise<Action> {
    const over = this.#begins(action.id)
    try {
      // Whoever was before it may have changed what is known of it.
      const now = (await this.#ports.executor.store.read(findAction, action.id)) ?? action
      const [settled] = await within.run([...around, action.id], () =>
        settleActions(this.#actPorts(call), this.#ref, [now], this.signal),
      )
      return settled ?? now
    } catch (error) {
      if (error instanceof Stopped) return await this.#ports.run.halt({ kind: 'stopped', why: error.why })
      throw error
    } finally {
      over()
    }
  }

  #begins(id: ActionId): () => void {
    const release = this.#ports.run.busy()
    const over = () => {
      if (!this.#atWork.delete(id)) return
      release()
      for (const tell of this.#whenLess.splice(0)) tell()
    }
    this.#atWork.set(id, over)
    return over
  }

  #actPorts({ tool }: OwnCall): ActPorts {
    const { executor, agent } = this.#ports
    const { store, clock, home } = executor
    const tools = new Map([[tool.name, tool]])
    return {
      store,
      clock,
      tools: agent.watch?.tools(tools) ?? tools,
      folders: foldersIn(home),
      onAction: (action) => agent.watch?.heard({ kind: 'action', action }),
      agent: agent.name,
      policy: agent.policy ?? [],
      ...(agent.approvalMs === undefined ? {} : { approvalMs: agent.approvalMs }),
      whoCouldStill: (runId) => endRivals(store, clock, runId),
    }
  }

  /** In the words of the loop: a result, or why there is none. */
  async #answer({ doubt }: OwnCall, action: Action): Promise<unknown> {
    const { state, result, error } = action
    // What was asked for inside of it is not asked for again.
    this.#ports.run.passOver(`${action.id}: `)
    if (state === 'done') return result
    if (isUndecided(action) && !(state === 'in_doubt' && doubt === 'tell')) return this.#waitForPerson()
    if (state === 'in_doubt')
      throw new CallNotDone('unknown', `it may or may not have happened (${error ?? 'it was cut off'})`)
    throw new CallNotDone(isRefused(action) ? 'denied' : 'failed', error ?? 'it did not happen')
  }

  /** What is under way beside it comes to its end first; then the function is left where it is, and its run is parked. */
  async #waitForPerson(): Promise<never> {
    const around = within.getStore() ?? []
    const others = () => [...this.#atWork.keys()].some((id) => !around.includes(id))
    let proposed: Promise<unknown>
    do {
      if (others()) await new Promise<void>((resolve) => this.#whenLess.push(resolve))
      // Those of the same reply are called for in the same turn, and at work once they are proposed.
      await (proposed = this.#proposals)
      await new Promise<void>(afterThisTurn)
    } while (others() || proposed !== this.#proposals)
    for (const id of around) this.#atWork.get(id)?.()
    return this.#ports.run.halt({ kind: 'undecided' })
  }

  #propose(call: OwnCall): Promise<Action> {
    const mine = this.#proposals.then(() => this.#proposeNow(call))
    this.#proposals = mine.catch(() => {})
    return mine
  }

  async #proposeNow(call: OwnCall): Promise<Action> {
    const { store } = this.#ports.executor
    const id = actionIdOf(this.runId, `${call.step}/${call.callId}`)
    const known = await store.read(findAction, id)
    if (known !== undefined) return this.#same(known, call)
    const action = this.#newAction(id, call, await store.read(rulesInForce), await call.said?.())
    const entry = await this.#entryOf(call.step)
    const proposed = await untilStored(this.#ports.executor, () => store.apply(proposeOwn, this.#ref, action, entry))
    if (proposed.kind === 'refused') return this.#ports.run.halt({ kind: 'stopped', why: proposed.why })
    return proposed.action
  }

  async #entryOf(step: string): Promise<number | undefined> {
    if (!this.#entries.has(step) && !this.#knowsEntries) {
      for (const { seq, body } of await this.#ports.executor.store.read(entriesOfRun, this.runId))
        if (typeof body['step'] === 'string') this.#entries.set(body['step'], seq)
      this.#knowsEntries = true
    }
    return this.#entries.get(step)
  }

  /** What is recorded is what was wanted; another program, or one that leaves something to chance, wants something else now. */
  #same(known: Action, { tool, input }: OwnCall): Action | Promise<Action> {
    if (known.tool === tool.name && canonicalJson(known.input ?? null) === canonicalJson(input ?? null)) return known
    const error = `its code has changed since it began: it calls ${tool.name} with other arguments than those that are recorded; nothing was done again`
    return this.#ports.run.halt({ kind: 'broken', error })
  }

  #newAction(id: ActionId, call: OwnCall, stored: readonly PolicyRule[], said: ProgramSays | undefined): NewAction {
    const { agent, random } = this.#ports
    const { tool, input, callId } = call
    const effect = effectOfCall(tool, input)
    const judged = { tool: tool.name, effect, agent: agent.name, thread: this.#ports.call.threadId, input }
    return {
      id,
      mark: random.hex(15),
      callId,
      tool: tool.name,
      effect,
      repeats: tool.repeat,
      input,
      signature: signatureOf(tool.name, tool.identity(input)),
      version: versionOf(tool),
      verdict: together(judge([...(agent.policy ?? []), ...stored], judged), said),
      ...(tool.once === undefined ? {} : { window: { agent: agent.name, once: tool.once } }),
      ...(agent.approvalMs === undefined ? {} : { expiresInMs: agent.approvalMs }),
    }
  }
}

/** Deny wins, then a question; what the program allows is allowed where no rule says anything. */
function together(verdict: Verdict, said: ProgramSays | undefined): Verdict {
  if (said === undefined || verdict.kind === 'deny') return verdict
  const { kind, why } = said
  if (kind === 'deny') return { kind, by: why, via: 'program' }
  if (kind === 'ask') return { kind, by: why, via: 'program' }
  return verdict.via === 'default' ? { kind, by: why, via: 'program' } : verdict
}

const REFUSED: readonly string[] = ['denied', 'skipped', 'expired', 'withdrawn']
const isRefused = ({ state }: Action) => REFUSED.includes(state)

const BY_RULE: readonly (string | undefined)[] = [undefined, 'configuration', 'stored rule', 'default', 'schedule']

function whoSaid(via: string | undefined): Standing['by'] {
  if (via === 'program') return 'program'
  return BY_RULE.includes(via) ? 'rule' : 'person'
}

/** What is asked inside of a call is known by it: the same question may be asked elsewhere. */
const placeOf = (around: readonly ActionId[] | undefined) => (around === undefined ? '' : `${around.at(-1) ?? ''}: `)
