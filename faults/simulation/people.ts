import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { openDoubts, resolveDoubt } from '../../src/actions/doubt.ts'
import { newMessageId, newRunId, newScheduleId } from '../../src/base/ids.ts'
import type { RunId, ScheduleId, ThreadId } from '../../src/base/ids.ts'
import { sleep } from '../../src/base/clock.ts'
import { callOne, openCalls } from '../../src/runs/call.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { findRun, listRuns } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import { DEFAULT_OPTIONS } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import type { SimProcess } from './sim-process.ts'
import type { World } from './world.ts'

export const LEAD = 'lead' as ThreadId
/** Of work that somebody asks for himself. */
export const CLERK = 'clerk' as ThreadId

type Request<T> = (store: Store) => Promise<T>

/** Somebody who asks until he is answered, in as many processes as it takes: the same each time. */
class Somebody {
  readonly #world: World
  readonly name: string
  #open: { readonly process: SimProcess; readonly store: Promise<Store> } | undefined

  constructor(world: World, name: string) {
    this.#world = world
    this.name = name
  }

  async asks<T>(request: Request<T>): Promise<T> {
    for (;;) {
      const answer = await this.once(request)
      if (answer !== undefined) return answer.value
      await sleep(this.#world.time, 50)
    }
  }

  /** Undefined: no answer came. */
  async once<T>(request: Request<T>): Promise<{ value: T } | undefined> {
    const { process, store } = (this.#open ??= this.#begin())
    const tooLong = sleep(this.#world.time, 5_000).then(() => undefined)
    const done = store.then(request).then(
      (value) => ({ value }),
      (error: unknown) =>
        void this.#world.warnings.push(`${this.#world.time.monotonicMs()} ${process.name}: ${String(error)}`),
    )
    const answer = await Promise.race([done, tooLong, process.death.then(() => undefined)])
    if (answer === undefined) this.leaves()
    return answer
  }

  leaves(): void {
    this.#open?.process.die()
    this.#open = undefined
  }

  #begin() {
    const process = this.#world.newProcess(this.name)
    const store = this.#world.open(process)
    store.catch(() => {})
    return { process, store }
  }
}

/** What was acknowledged, so it must be true whatever comes. */
export interface Acknowledged {
  /** What each of them says, by its key. */
  readonly messages: Map<string, string>
  readonly cancelled: Set<RunId>
  /** What somebody meant to cancel, whatever he was answered. */
  readonly unwanted: Set<RunId>
  readonly calls: Set<RunId>
  /** By the action's id. */
  readonly approved: Set<string>
  /** By the approval's id: what a person meant to say no to. */
  readonly denied: Set<string>
  /** By the action's id: what a person meant to say of that it did not happen. */
  readonly undone: Set<string>
  /** How often each is to fire. */
  readonly schedules: Map<ScheduleId, number>
}

/** How often a schedule fires, and what becomes of a firing that comes while the last is at work. */
export interface Rhythm {
  readonly everyMs?: number
  readonly overlap?: 'skip' | 'queue'
  readonly text?: string
}

/** Those outside: they send, call, plan, decide and cancel. */
export class People {
  readonly acknowledged: Acknowledged = {
    messages: new Map(),
    cancelled: new Set(),
    unwanted: new Set(),
    calls: new Set(),
    approved: new Set(),
    denied: new Set(),
    undone: new Set(),
    schedules: new Map(),
  }
  readonly #waiting = new Set<Somebody>()
  readonly #world: World
  readonly #person: Somebody
  readonly #says: Decision | undefined
  /** What was asked for so far, to be asked for again. */
  readonly #requests: Request<unknown>[] = []
  #deciding = false

  /** `says`: to everything, instead of what its id tells. */
  constructor(world: World, says?: Decision) {
    this.#world = world
    this.#says = says
    this.#person = new Somebody(world, 'person')
    world.redeliver = (which) => this.#redeliver(which)
  }

  /** Those who have asked for something, and wait for the answer. */
  get unanswered(): string[] {
    return [...this.#waiting].map(({ name }) => name)
  }

  async send(text: string, key: string, threadId: ThreadId = LEAD, agent = 'lead'): Promise<void> {
    const { random } = this.#world
    await this.#ask('sender', (store) =>
      store.apply(sendMessage, {
        threadId,
        agent,
        text,
        key,
        messageId: newMessageId(random),
        runId: newRunId(random),
      }),
    )
    this.acknowledged.messages.set(key, text)
  }

  async call(input: string, key: string): Promise<void> {
    const { random } = this.#world
    const called = await this.#ask('caller', async (store) => {
      await store.apply(openCalls, 'steps')
      return store.apply(callOne, { id: newRunId(random), agent: 'steps', input, key })
    })
    this.acknowledged.calls.add(called.runId)
  }

  async plan(firings: number, { everyMs = 1_200, overlap = 'skip', text = 'round' }: Rhythm = {}): Promise<void> {
    const schedule = {
      id: newScheduleId(this.#world.random),
      name: 'rounds',
      kind: 'job',
      rule: { kind: 'every', everyMs },
      target: { kind: 'agent', agent: 'clerk', text },
      options: { ...DEFAULT_OPTIONS, maxFirings: firings, overlap },
      madeBy: 'somebody',
    } as const
    await this.#ask('planner', (store) => store.apply(addSchedule, schedule))
    this.acknowledged.schedules.set(schedule.id, firings)
  }

  /** One of the runs that are open, if there is one; best one that somebody is at work on. */
  async cancel(choose: 'worker' | 'any' = 'worker'): Promise<void> {
    let chosen: RunId | undefined
    const cancelled = await this.#ask('impatient', async (store) => {
      const runs = await store.read(listRuns, { states: ['queued', 'running', 'parked'], limit: 20 })
      const own = runs.filter(({ agent }) => choose === 'any' || agent !== 'lead')
      const best = own.filter(({ state }) => state === 'running')
      chosen ??= this.#world.dice.pick(best.length > 0 ? best : own)?.id
      if (chosen === undefined) return undefined
      this.acknowledged.unwanted.add(chosen)
      const { kind } = await store.apply(cancelRun, chosen, { by: 'somebody', reason: 'enough' })
      return kind === 'cancelled' || kind === 'requested' ? chosen : undefined
    })
    if (cancelled !== undefined) this.acknowledged.cancelled.add(cancelled)
  }

  /** A person who looks at what waits, and settles doubts by what the ledger says. One look at a time. */
  decide(): void {
    if (this.#deciding) return
    this.#deciding = true
    void this.#person
      .asks(async (store) => {
        for (const { id, digest } of await store.read(pendingApprovals, 100)) await this.#answer(store, id, digest)
        for (const { id } of await store.read(openDoubts, 100)) await this.#settle(store, id)
      })
      .finally(() => (this.#deciding = false))
  }

  async #answer(store: Store, id: string, digest: string): Promise<void> {
    const answer = { kind: this.#says ?? decisionFor(id), by: 'a person', via: 'simulation', digest } as const
    const request: Request<unknown> = (opened) => opened.apply(decideApproval, id, answer)
    this.#requests.push(request)
    if (answer.kind === 'deny') this.acknowledged.denied.add(id)
    const decided = await store.apply(decideApproval, id, answer)
    if (decided.kind === 'decided' && answer.kind === 'approve') this.acknowledged.approved.add(decided.action.id)
  }

  async #settle(store: Store, id: Parameters<typeof resolveDoubt>[0]): Promise<void> {
    // Who was given work is known by the call that gave it.
    const child = await store.read(findRun, id.replace(/^act_/, 'run_') as RunId)
    const happened = child !== undefined || this.#world.ledger.timesOf(id) > 0
    const kind = happened ? 'happened' : (this.#says ?? decisionFor(id)) === 'approve' ? 'run-again' : 'did-not-happen'
    if (kind === 'did-not-happen') this.acknowledged.undone.add(id)
    const said = { by: 'a person', why: 'the ledger says so' }
    const { kind: became } = await store.apply(resolveDoubt, id, { kind, ...said })
    // Nobody is there any more to do it.
    if (became !== 'run-ended') return
    this.acknowledged.undone.add(id)
    await store.apply(resolveDoubt, id, { kind: 'did-not-happen', ...said })
  }

  async #ask<T>(name: string, request: Request<T>): Promise<T> {
    this.#requests.push(request)
    const somebody = new Somebody(this.#world, name)
    this.#waiting.add(somebody)
    const answer = await somebody.asks(request)
    this.#waiting.delete(somebody)
    somebody.leaves()
    return answer
  }

  /** The same request once more: its first answer was lost, or the network delivered it twice. */
  #redeliver(which: number): void {
    const request = this.#requests[which % Math.max(1, this.#requests.length)]
    const again = new Somebody(this.#world, 'again')
    if (request !== undefined) void again.once(request).finally(() => again.leaves())
  }
}

export type Decision = 'approve' | 'deny'

/** The same each time it is asked for: a person who was cut off does not change his mind. */
export function decisionFor(id: string): Decision {
  return Number.parseInt(id.slice(-2), 16) % 4 === 0 ? 'deny' : 'approve'
}
