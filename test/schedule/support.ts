import {
  newMessageId,
  newRunId,
  newScheduleId,
  newThreadId,
  newWorkerId,
  systemRandomness as random,
} from '../../src/base/ids.ts'
import type { RunId, ScheduleId, ThreadId, WorkerId } from '../../src/base/ids.ts'
import { eventsAfter } from '../../src/events/event.ts'
import type { EventType } from '../../src/events/event.ts'
import { finishRun } from '../../src/runs/finish.ts'
import type { Outcome } from '../../src/runs/finish.ts'
import type { Claim } from '../../src/runs/claim.ts'
import { claimRun } from '../../src/runs/claim.ts'
import { heldAttempts } from '../../src/runs/recover.ts'
import { findRun } from '../../src/runs/run.ts'
import { sendMessage, wakeThread } from '../../src/runs/send.ts'
import { registerWorker } from '../../src/runs/worker.ts'
import { addSchedule } from '../../src/schedule/edit.ts'
import type { NewSchedule } from '../../src/schedule/edit.ts'
import { dueAgain, dueSchedules, fireAgain, fireSchedule } from '../../src/schedule/fire.ts'
import { listOccurrences } from '../../src/schedule/occurrence.ts'
import type { Occurrence } from '../../src/schedule/occurrence.ts'
import { DEFAULT_OPTIONS, findSchedule } from '../../src/schedule/schedule.ts'
import type { Schedule, ScheduleOptions, Target } from '../../src/schedule/schedule.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { consumeMessages } from '../../src/threads/consume.ts'
import { idleThreads, pendingMessages } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { LEASE_MS, someIdentity } from '../support/world.ts'
import type { TestDatabase, TestEngine } from '../support/engines.ts'

export const START = Date.UTC(2026, 0, 1)
export const AGENT = 'clerk'
export const newIds = () => ({
  threadId: newThreadId(random),
  runId: newRunId(random),
  messageId: newMessageId(random),
})

type Options = Partial<Omit<NewSchedule, 'options'>> & { readonly options?: Partial<ScheduleOptions> }

/** A store, a clock that a test moves, a thread of an agent that a daemon has, and a hand that does what a daemon does. */
export class ScheduleWorld {
  readonly store: Store
  readonly clock: FakeClock
  readonly thread: ThreadId
  readonly worker: WorkerId

  private constructor(store: Store, clock: FakeClock, thread: ThreadId, worker: WorkerId) {
    this.store = store
    this.clock = clock
    this.thread = thread
    this.worker = worker
  }

  static async open(engine: TestEngine, start = START): Promise<ScheduleWorld> {
    const clock = new FakeClock(start)
    return ScheduleWorld.with(await (await engine.database()).open({ clock }), clock)
  }

  /** With a handle to the database, to open it as another process would. */
  static async openWith(engine: TestEngine): Promise<{ world: ScheduleWorld; database: TestDatabase }> {
    const [clock, database] = [new FakeClock(START), await engine.database()]
    return { world: await ScheduleWorld.with(await database.open({ clock }), clock), database }
  }

  static async with(store: Store, clock: FakeClock): Promise<ScheduleWorld> {
    const worker = newWorkerId(random)
    const agents = [AGENT, 'holdfast:webhook']
    await store.apply(registerWorker, {
      id: worker,
      kind: 'daemon',
      home: `/home/${worker}`,
      identity: someIdentity(),
      agents,
    })
    const { id } = await store.apply(openThread, newThreadId(random), AGENT, null)
    return new ScheduleWorld(store, clock, id, worker)
  }

  get message(): Target {
    return { kind: 'message', threadId: this.thread, generation: 1, text: 'look again' }
  }

  async add(given: Options = {}): Promise<Schedule> {
    const id = newScheduleId(random)
    const added = await this.store.apply(addSchedule, {
      id,
      name: given.name ?? id,
      kind: 'job',
      rule: { kind: 'every', everyMs: 60_000, anchor: START + 60_000 },
      target: this.message,
      madeBy: 'ada',
      ...given,
      options: { ...DEFAULT_OPTIONS, ...given.options },
    })
    if (added.kind !== 'added') throw new Error(`not added: ${added.kind}`)
    return added.schedule
  }

  /** What a daemon that looks now would do, until nothing is due. How many firings. */
  async look(): Promise<number> {
    let fired = 0
    for (;;) {
      const [due, again] = [await this.store.read(dueSchedules, 100), await this.store.read(dueAgain, 100)]
      const results = await Promise.all([
        ...due.map(({ id, nextAt }) => this.store.apply(fireSchedule, id, nextAt, newIds())),
        ...again.map(({ id }) => this.store.apply(fireAgain, id, newIds())),
      ])
      const now = results.filter(({ kind }) => kind === 'fired').length
      if (now === 0) return fired
      fired += now
    }
  }

  /** Lets time pass and looks. */
  async pass(ms: number): Promise<number> {
    this.clock.step(ms)
    return this.look()
  }

  /** A person writes to the thread. */
  async write(text = 'please'): Promise<void> {
    const { messageId, runId } = newIds()
    await this.store.apply(sendMessage, { messageId, runId, threadId: this.thread, agent: AGENT, text, key: messageId })
  }

  async claim(): Promise<Claim | undefined> {
    const attempt = { id: `att_${random.id()}` as never, mark: random.hex(16) }
    return this.store.apply(claimRun, {
      workerId: this.worker,
      leaseMs: LEASE_MS,
      limits: {},
      attempt,
      agents: [AGENT],
    })
  }

  /** Takes the next run, with what is in its inbox, and ends it so. Undefined: there is none. */
  async work(outcome: Outcome = { state: 'succeeded' }): Promise<RunId | undefined> {
    const claim = await this.begin()
    if (claim !== undefined) await this.end(claim, outcome)
    return claim?.run.id
  }

  async begin(): Promise<Claim | undefined> {
    const claim = await this.claim()
    if (claim === undefined) return undefined
    const { id, threadId } = claim.run
    const pending = await this.store.read(pendingMessages, threadId, 100)
    await this.store.apply(
      consumeMessages,
      pending.map((message) => message.id),
      id,
      threadId,
    )
    return claim
  }

  /** Ends whatever can be ended: as cancelled where that was asked for. How many. */
  async finishAny(): Promise<number> {
    const held = await this.store.read(heldAttempts)
    for (const { id, runId } of held) {
      const run = await this.store.read(findRun, runId)
      const state = run?.cancelRequestedAt === null ? 'succeeded' : 'cancelled'
      await this.store.apply(finishRun, { id, runId, fence: run?.fence ?? 0 }, { state })
    }
    for (const { threadId, agent } of await this.store.read(idleThreads, [AGENT], 10))
      await this.store.apply(wakeThread, threadId, agent, newRunId(random))
    return held.length + ((await this.work()) === undefined ? 0 : 1)
  }

  async end({ attempt, run }: Claim, outcome: Outcome): Promise<void> {
    await this.store.apply(finishRun, { id: attempt.id, runId: run.id, fence: run.fence }, outcome)
  }

  async lines(scheduleId: ScheduleId): Promise<Occurrence[]> {
    return (await this.store.read(listOccurrences, { scheduleId, limit: 1_000 })).toReversed()
  }

  async states(scheduleId: ScheduleId): Promise<string[]> {
    return (await this.lines(scheduleId)).map(({ state }) => state)
  }

  /** The events of this type that tell of this schedule. */
  async events(type: EventType, scheduleId: ScheduleId): Promise<Record<string, unknown>[]> {
    const all = await this.store.read(eventsAfter, 0, 100_000)
    return all.filter((event) => event.type === type && event.data['scheduleId'] === scheduleId).map(({ data }) => data)
  }

  async reread(id: ScheduleId): Promise<Schedule> {
    const schedule = await this.store.read(findSchedule, id)
    if (schedule === undefined) throw new Error(`no schedule ${id}`)
    return schedule
  }
}
