import { pendingApprovals } from '../../src/actions/approval.ts'
import { decideApproval } from '../../src/actions/decide.ts'
import { newMessageId, newRunId, newThreadId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { endedRuns } from '../../src/runs/run.ts'
import type { RunEnd } from '../../src/runs/run.ts'
import { sendMessage } from '../../src/runs/send.ts'
import { submitRun } from '../../src/runs/submit.ts'
import type { Store } from '../../src/store/store.ts'
import { acknowledgeDelivery, leaseMessages } from '../../src/threads/delivery.ts'
import { openThread } from '../../src/threads/thread.ts'
import type { AgentName } from '../kill/agents.ts'
import { sleep } from '../kill/program.ts'
import type { Yard } from '../kill/yard.ts'
import type { Dice } from '../simulation/seeded.ts'

/** So many runs at a time, and no more than so many a second: hours of steady work, on a machine that has time to recover. */
const AT_WORK = 6
const BETWEEN_MS = 250
const LOOK_MS = 25
const INBOX = 'inbox' as ThreadId
const AGENT_NAMES: readonly AgentName[] = ['plain', 'keyed', 'probed', 'careful', 'conductor']

/** Somebody who always has work, answers what is asked, takes what comes in, and stops some of it. */
export class Load {
  readonly #store: Store
  readonly #yard: Yard
  readonly #dice: Dice
  /** What was acknowledged and has not ended; with the time at which it is cancelled, if it is to be. */
  readonly #open = new Map<RunId, number | undefined>()
  readonly #cancelled = new Set<RunId>()
  /** Runs whose end is to be told to the inbox. */
  readonly #awaited = new Set<string>()
  readonly problems: string[] = []
  begun = 0
  isBroken = false
  #wanted = true
  #working: Promise<void> = Promise.resolve()

  constructor(store: Store, yard: Yard, dice: Dice) {
    this.#store = store
    this.#yard = yard
    this.#dice = dice
  }

  async start(): Promise<void> {
    await this.#store.apply(openThread, INBOX, 'nobody', null)
    const schedule = ['schedule', 'add', 'tick', '--every', '2s', '--', ...this.#yard.ownRun(0)]
    const { code, stderr } = await this.#yard.command(schedule).ended
    if (code !== 0) throw new Error(`the schedule was not made: ${stderr}`)
    this.#working = this.#work().catch((error: unknown) => {
      this.isBroken = true
      this.problems.push(`the load broke: ${String(error)}`)
    })
  }

  inFlight(): RunId[] {
    return [...this.#open.keys()]
  }

  isOver(ids: readonly RunId[]): boolean {
    return ids.every((id) => !this.#open.has(id))
  }

  /** No more work; all that was begun comes to its end, or is told. */
  async stop(deadlineMs: number): Promise<void> {
    this.#wanted = false
    const deadline = performance.now() + deadlineMs
    while (!this.isBroken && this.#open.size + this.#awaited.size > 0 && performance.now() < deadline)
      await sleep(LOOK_MS)
    this.problems.push(...[...this.#open.keys()].map((id) => `${id} never ended`))
    this.problems.push(...[...this.#awaited].map((key) => `nobody was told of ${key}`))
    this.#open.clear()
    this.#awaited.clear()
    await this.#working
  }

  async #work(): Promise<void> {
    let next = performance.now()
    while (this.#wanted || this.#open.size + this.#awaited.size > 0) {
      for (const run of await this.#store.read(endedRuns, this.inFlight())) this.#ended(run)
      await this.#answer()
      await this.#take()
      await this.#cancel()
      if (this.#wanted && this.#open.size < AT_WORK && performance.now() >= next) {
        await this.#begin()
        next = Math.max(next + BETWEEN_MS, performance.now() - BETWEEN_MS)
      }
      await sleep(LOOK_MS)
    }
  }

  #ended({ id, state, code, error }: RunEnd): void {
    this.#open.delete(id)
    const wanted = this.#cancelled.delete(id) ? 'cancelled' : 'succeeded'
    if (state !== wanted) this.problems.push(`${id} should have ${wanted} and is ${state}: ${code} ${error}`)
  }

  async #answer(): Promise<void> {
    for (const { id, digest } of await this.#store.read(pendingApprovals, 20))
      await this.#store.apply(decideApproval, id, { kind: 'approve', by: 'a person', via: 'test', digest })
  }

  /** The ends of commands come to the inbox, each once. */
  async #take(): Promise<void> {
    const id = `dlv_${random.id()}`
    const delivery = { id, threadId: INBOX, by: { kind: 'hand' }, limit: 50, bytes: 1e6 } as const
    const { messages } = await this.#store.apply(leaseMessages, delivery)
    if (messages.length === 0) return
    await this.#store.apply(acknowledgeDelivery, id)
    for (const { key } of messages)
      if (!this.#awaited.delete(key)) this.problems.push(`${key} was told again, or to nobody who asked`)
  }

  async #cancel(): Promise<void> {
    for (const [id, at] of this.#open) {
      if (at === undefined || performance.now() < at || this.#cancelled.has(id)) continue
      this.#cancelled.add(id)
      await this.#store.apply(cancelRun, id, { by: 'a person' })
    }
  }

  async #begin(): Promise<void> {
    this.begun += 1
    const kind = this.#dice.fraction()
    if (kind < 0.4) await this.#command(this.#dice.below(300), undefined)
    else if (kind < 0.5) await this.#command(60_000, performance.now() + this.#dice.below(800))
    else await this.#agent(this.#dice.pick(AGENT_NAMES))
  }

  async #command(ms: number, cancelAt: number | undefined): Promise<void> {
    const id = newRunId(random)
    const request = { kind: 'command', argv: this.#yard.ownRun(ms), cwd: '/' } as const
    this.#awaited.add(`run:${id}`)
    const place = { threadId: newThreadId(random), agent: 'command', parentThreadId: INBOX }
    await this.#store.apply(submitRun, { id, ...place, request })
    this.#open.set(id, cancelAt)
  }

  async #agent(agent: AgentName): Promise<void> {
    const ids = { messageId: newMessageId(random), runId: newRunId(random), threadId: newThreadId(random) }
    await this.#store.apply(sendMessage, { ...ids, agent, text: 'write', key: ids.messageId })
    this.#open.set(ids.runId, undefined)
  }
}
