import { expireApprovals } from '../actions/decide.ts'
import { sleep } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { describeError } from '../base/errors.ts'
import { newAttemptId, newRunId } from '../base/ids.ts'
import type { AttemptId, Randomness, RunId, ThreadId, WorkerId } from '../base/ids.ts'
import { LIMITS } from '../base/limits.ts'
import { harmlessVariables } from '../base/variables.ts'
import { isAnyUnderWay } from '../define/owner.ts'
import { thisPlace } from '../processes/identity.ts'
import { sweepByMark } from '../processes/trail.ts'
import { cancelledAttempts, takeoversOf } from '../runs/attempt.ts'
import type { AttemptRef } from '../runs/attempt.ts'
import { CALL_QUEUED, refOfCall } from '../runs/call.ts'
import type { ClaimedCall } from '../runs/call.ts'
import type { CapacityLimits } from '../runs/capacity.ts'
import { claimRun } from '../runs/claim.ts'
import { finishRun } from '../runs/finish.ts'
import type { Claim } from '../runs/claim.ts'
import { resumeDue } from '../runs/park.ts'
import { expireQueued, handOverRun } from '../runs/recover.ts'
import { findRun } from '../runs/run.ts'
import { wakeThread } from '../runs/send.ts'
import { stopWorker } from '../runs/worker.ts'
import type { WorkerKind } from '../runs/worker.ts'
import type { Store } from '../store/store.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { idleThreads } from '../threads/message.ts'
import type { AnyAgent, LiveEvent } from './agents/execute-agent.ts'
import { Calls, callOf, refuseMessages } from './functions/calls.ts'
import type { CallsOptions } from './functions/calls.ts'
import { continueTaken, executeClaim, refOf } from './execute.ts'
import type { Executor, Stoppable } from './execute.ts'
import { commandFolder } from './home.ts'
import { Lease } from './lease.ts'
import { takeLostRuns } from './recover.ts'
import type { Taken } from './recover.ts'
import { ClockTrust } from './history/clock-trust.ts'
import { rememberSeen } from './history/restored.ts'
import { sweepRemains } from './sweep.ts'
import { doEach, inboxJobs, oldJobs } from './tend-inbox.ts'
import type { Job } from './tend-inbox.ts'
import type { Watch, WatchOptions } from './watch.ts'
import { Workspaces } from './workspace/workspaces.ts'
import type { WorkspacesOptions } from './workspace/workspaces.ts'

export interface WorkerOptions extends Pick<WatchOptions, 'wakes' | 'notifies' | 'keeper'> {
  readonly store: Store
  readonly clock: Clock
  readonly random: Randomness
  readonly home: string
  readonly kind: WorkerKind
  readonly leaseMs: number
  readonly limits: CapacityLimits
  /** How many runs this process executes at once. */
  readonly concurrency: number
  /** How many functions are at work at once. */
  readonly calls?: number
  /** Hears of the calls that ended here. */
  readonly onEnd?: CallsOptions['onEnd']
  readonly graceMs: number
  readonly foreground?: NonNullable<Executor['foreground']>
  /** The agents that this process can be. */
  readonly agents?: ReadonlyMap<string, AnyAgent>
  readonly warn: (message: string) => void
  /** Hears what agents say and do here, as it happens. */
  readonly live?: (event: LiveEvent) => void
  /** Tells outside what is carried out here. */
  readonly telemetry?: Pick<Telemetry, 'attempt' | 'fired'>
  /** Takes in what hooks could only leave on disk. */
  readonly replaySpool?: () => Promise<void>
  /** How long the ledger of schedules keeps what was settled, if somebody said so. */
  readonly occurrencesKeptMs?: number
  /** For the files of runs: git finds itself and the user's settings by these variables, checks get the harmless ones. */
  readonly workspaces?: Pick<WorkspacesOptions, 'env' | 'point'>
}

interface Held {
  readonly claim: Claim
  command?: Stoppable
  readonly settled: Promise<void>
}

/** A process that claims runs and carries them out. */
export class Worker {
  readonly id: WorkerId
  readonly #options: WorkerOptions
  readonly #held = new Map<AttemptId, Held>()
  readonly #lease: Lease
  readonly #stopListening: () => void
  readonly #calls: Calls
  readonly #workspaces: Workspaces
  readonly #trust: ClockTrust
  #watch: Watch | undefined
  #claiming: Promise<void> | undefined
  #claimAgain = false
  #takes: 'anything' | 'nothing' = 'nothing'
  /** Something unexpected happened while carrying these out; as long as they are ours, nobody else may look. */
  readonly #unsettled: AttemptRef[] = []
  #strays: ReadonlySet<AttemptId> = new Set()

  constructor(id: WorkerId, options: WorkerOptions) {
    this.id = id
    this.#options = options
    const { store, clock, leaseMs, warn } = options
    this.#trust = new ClockTrust({ store, clock, warn })
    this.#lease = new Lease({
      store,
      clock,
      leaseMs,
      warn,
      workerId: id,
      held: () => [...this.#held.keys(), ...this.#calls.held()],
      onLost: (lost) => this.#giveUp(lost),
      onRenewed: (renewed) => void this.#releaseStrays(renewed),
      onFenced: () => this.#stopAll(),
    })
    this.#workspaces = this.#openWorkspaces()
    this.#calls = this.#openCalls()
    this.#stopListening = store.onChange((topics) => this.#look(topics))
  }

  /** Those of this program's functions. */
  get calls(): Pick<Calls, 'reserve' | 'fill' | 'callHere' | 'has'> {
    return this.#calls
  }

  get heldCount(): number {
    return this.#held.size + this.#calls.size
  }

  /** The daemon's life: take over what was lost, then claim whenever there is something and a place for it. */
  async start(): Promise<void> {
    const watch = await this.watch()
    // What it cannot do is no harm: the next commit says what is wrong, to somebody who waits for it.
    void this.#options.store.warmUp().catch(() => {})
    // As at each tick: a database that is away for a moment keeps nobody from starting.
    await doEach([this.#recovery], this.#options.warn)
    void this.#workspaces.begin()
    void sweepRemains(this.#options.home, this.#options.store, this.#options.clock).catch((error: unknown) =>
      this.#options.warn(`old output could not be removed: ${describeError(error)}`),
    )
    this.#takes = 'anything'
    this.#calls.start()
    this.#look()
    watch.schedule()
  }

  /** Its code is loaded where there is one: most commands carry out a run and end. */
  async watch(): Promise<Watch> {
    const { Watch } = await import('./watch.ts')
    const onFired = this.#options.telemetry?.fired
    this.#watch ??= new Watch({ ...this.#options, onFired, calls: this.#calls, wakeThreads: () => this.#wakeIdle() })
    return this.#watch
  }

  /** Takes over what lost its worker, or just one run of it, and goes on with it in the background. */
  async recover(only?: RunId): Promise<readonly Claim[]> {
    const { store, random, leaseMs } = this.#options
    const agents = new Set(this.#options.agents?.keys())
    const taken: Claim[] = []
    const onTaken = ({ claim, home }: Taken) => {
      taken.push(claim)
      if (claim.run.input !== null) return this.#calls.take(callOf(claim))
      void this.#hold(claim, this.#continuing(claim, home))
    }
    await takeLostRuns({ store, random, workerId: this.id, leaseMs, agents }, onTaken, only)
    return taken
  }

  /** Claims this one run, when there is a slot for it, and carries it out. False if it cannot be claimed now. */
  async perform(runId: RunId): Promise<boolean> {
    const claim = await this.#claim(runId)
    if (claim === undefined) return false
    await this.#hold(claim, this.#beginning(claim))
    return true
  }

  /** Resolves when nothing is held any more. */
  async settled(): Promise<void> {
    await this.#calls.settled()
    while (this.#held.size > 0) await Promise.all([...this.#held.values()].map(({ settled }) => settled))
    await this.#workspaces.idle()
  }

  /** No new claims; what runs gets `graceMs` to end, then its claim is let go and its supervisor goes on alone. */
  async drain(graceMs: number, hurry?: AbortSignal): Promise<{ handedOver: number }> {
    this.#takes = 'nothing'
    this.#calls.stop()
    await this.#claiming
    await Promise.race([this.settled(), sleep(this.#options.clock, graceMs, hurry, { ref: false })])
    this.#calls.close()
    // What is being stored is answered, and given back: with the steps that it has not begun.
    await Promise.race([this.#calls.stored(), sleep(this.#options.clock, LIMITS.drainMs, hurry, { ref: false })])
    const remaining = [
      ...[...this.#held.values()].map(({ claim }) => refOf(claim)),
      ...this.#calls.remaining().map(refOfCall),
    ]
    this.#unsettled.push(...remaining)
    const trees = this.#workspaces.letGo([...this.#held.values()].map(({ claim }) => claim.run.id))
    await Promise.race([trees, sleep(this.#options.clock, LIMITS.drainMs, hurry, { ref: false })])
    // Before it is let go of: whoever takes it over on another machine goes by what is said then.
    const goesOn = this.#goesOn
    await this.#release()
    await this.stop(!goesOn)
    return { handedOver: remaining.length }
  }

  /**
   * An attempt that is ours by the database and that nobody here carries out, in two answers in a row: its claim was
   * committed and its answer lost. As long as it is renewed nobody else may look at it.
   */
  async #releaseStrays(renewed: readonly AttemptRef[]): Promise<void> {
    const strays = renewed.filter(({ id }) => !this.#held.has(id) && !this.#calls.has(id))
    for (const stray of strays.filter(({ id }) => this.#strays.has(id))) await this.#calls.giveBack(stray)
    this.#strays = new Set(strays.map(({ id }) => id))
  }

  async #release(): Promise<void> {
    for (let next = this.#unsettled[0]; next !== undefined; next = this.#unsettled[0]) {
      await this.#options.store.apply(handOverRun, next)
      // A drain and a tick may let go of the same one.
      if (this.#unsettled[0] === next) this.#unsettled.shift()
    }
  }

  /**
   * A program is there when its runtime is closed, and so is what it has begun. What nobody can end from here could still be done: then
   * it is not said that this worker has stopped, and the end of the process tells. That of a daemon follows at once.
   */
  get #goesOn(): boolean {
    const isInHere = [...this.#held.values()].some(({ claim }) => claim.run.request.kind === 'agent')
    return this.#options.kind !== 'daemon' && (isInHere || this.#calls.size > 0 || isAnyUnderWay())
  }

  async stop(says = true): Promise<void> {
    this.#takes = 'nothing'
    this.#calls.close()
    this.#lease.stop()
    this.#stopListening()
    await this.#watch?.stop()
    if (says) await this.#options.store.apply(stopWorker, this.id)
  }

  readonly #recovery: Job = { what: 'recovery', work: () => this.recover() }

  /** Once a tick: what is lost elsewhere, what waited too long. Never throws, it is tried again anyway. */
  async tend(): Promise<void> {
    const { store, warn, home, replaySpool, occurrencesKeptMs } = this.#options
    const jobs: Job[] = [
      { what: 'what was let go of', work: () => this.#release() },
      this.#recovery,
      { what: 'runs that waited too long', work: () => store.apply(expireQueued, LIMITS.page) },
      { what: 'approvals that nobody gave', work: () => store.apply(expireApprovals, LIMITS.page) },
      { what: 'runs that are due', work: () => store.apply(resumeDue, LIMITS.page) },
      ...(replaySpool === undefined ? [] : [{ what: 'what hooks left in the spool', work: replaySpool }]),
      ...inboxJobs({ store, warn }),
      ...oldJobs({ store, trust: this.#trust, occurrencesKeptMs }),
      { what: 'idle threads', work: () => this.#wakeIdle() },
      { what: 'the mark of the newest event', work: () => rememberSeen(home, store) },
    ]
    await doEach(jobs, warn)
    await this.#watch?.look(this.#trust)
    // Not waited for: a check must not hold up what is lost elsewhere.
    void this.#workspaces.tend()
    this.#look()
  }

  /** Whatever failed before: a thread with messages and nobody at work gets a run. */
  async #wakeIdle(only?: ThreadId): Promise<void> {
    const { store, random, agents } = this.#options
    if (agents === undefined || agents.size === 0) return
    for (const { threadId, agent } of await store.read(idleThreads, [...agents.keys()], LIMITS.page, only)) {
      await store.apply(wakeThread, threadId, agent, newRunId(random))
    }
    if (only === undefined)
      await (await import('./agents/resume-sessions.ts')).resumeSessions({ store, random, agents })
  }

  /** A message that came while a run was ending, and a parent that waits for nothing else, wait for no heartbeat. */
  async #wakeAfter({ run }: Claim): Promise<void> {
    for (const threadId of [run.threadId, run.parentThreadId]) if (threadId !== null) await this.#wakeIdle(threadId)
  }

  #openWorkspaces(): Workspaces {
    const { workspaces = { env: {} }, ...options } = this.#options
    return new Workspaces({ ...options, ...workspaces, workerId: this.id, recover: () => this.recover() })
  }

  /** What a person asked for, or the end of its run decided. */
  async settleWorkspace(runId: RunId): Promise<void> {
    await this.#workspaces.settle(runId)
  }

  #openCalls(): Calls {
    const {
      store,
      clock,
      random,
      leaseMs,
      agents,
      limits,
      calls = LIMITS.callsAtWork,
      onEnd = () => {},
    } = this.#options
    const functions = new Map([...(agents ?? [])].flatMap(([name, agent]) => ('body' in agent ? [[name, agent]] : [])))
    const executor = this.#executor()
    const onBroken = (call: ClaimedCall, error: string) => {
      executor.warn(`run ${call.id} will be recovered: ${error}`)
      void this.#notCarriedOut(refOfCall(call), error)
    }
    return new Calls({
      store,
      clock,
      random,
      leaseMs,
      functions,
      limits,
      executor,
      onEnd,
      onBroken,
      workerId: this.id,
      concurrency: calls,
    })
  }

  #look(topics?: ReadonlySet<string>): void {
    if (isAbout(topics, CANCELS)) void this.#noticeCancels()
    if (isAbout(topics, this.#calls.isLimited ? [...CALLS, ...RUNS] : CALLS)) this.#calls.look()
    if (isAbout(topics, RUNS)) this.#claimRuns()
  }

  #claimRuns(): void {
    if (this.#claiming !== undefined) {
      this.#claimAgain = true
      return
    }
    if (this.#takes === 'anything') this.#claiming = this.#claimAll().finally(() => (this.#claiming = undefined))
  }

  async #claimAll(): Promise<void> {
    do {
      this.#claimAgain = false
      while (this.#takes === 'anything' && this.#held.size < this.#options.concurrency) {
        const claim = await this.#claim().catch((error: unknown) => this.#options.warn(describeError(error)))
        if (claim === undefined) break
        void this.#hold(claim, this.#beginning(claim))
      }
    } while (this.#claimAgain)
  }

  #claim(only?: RunId): Promise<Claim | undefined> {
    const { store, random, leaseMs, limits } = this.#options
    const attempt = { id: newAttemptId(random), mark: random.hex(16) }
    return store.apply(claimRun, {
      workerId: this.id,
      leaseMs,
      limits,
      attempt,
      agents: [...(this.#options.agents?.keys() ?? [])],
      host: thisPlace().host,
      ...(only === undefined ? {} : { only }),
    })
  }

  /** A command is begun; an agent goes on from what is recorded of its thread, whether that is nothing or half a turn. */
  #beginning(claim: Claim) {
    return (executor: Executor) =>
      claim.run.request.kind === 'agent' ? this.#agentTurns(executor, claim) : executeClaim(executor, claim)
  }

  #continuing(claim: Claim, home: string) {
    return (executor: Executor) =>
      claim.run.request.kind === 'agent'
        ? this.#agentTurns(executor, claim)
        : continueTaken(executor, claim, commandFolder(home, claim.attempt.mark))
  }

  /** What carries an agent out is loaded with the first of them. */
  async #agentTurns(executor: Executor, claim: Claim): Promise<void> {
    const agent = this.#options.agents?.get(claim.run.agent) ?? (await this.#standIn(executor, claim))
    if (agent === undefined) throw new Error(`there is no agent ${claim.run.agent} in this process`)
    if ('body' in agent) return refuseMessages(executor, claim)
    if ('command' in agent)
      return (await import('./agents/command-agent.ts')).executeCommandAgent(executor, claim, agent)
    return (await import('./agents/execute-agent.ts')).executeAgent(executor, claim, agent, this.#options.random)
  }

  async #standIn(executor: Executor, claim: Claim): Promise<AnyAgent | undefined> {
    if (claim.run.cancelRequestedAt === null) return undefined
    return (await import('./agents/gone-agent.ts')).goneAgent(executor, claim)
  }

  #executor(): Executor {
    const { store, clock, home, graceMs, leaseMs, foreground, warn, live, workspaces } = this.#options
    const onCommand = (attempt: AttemptId, command: Stoppable) => {
      const held = this.#held.get(attempt)
      if (held !== undefined) held.command = command
      // It was being started when everything was told to stop.
      if (this.#isFenced) command.stop('lease-lost')
      void this.#noticeCancels()
    }
    return {
      store,
      clock,
      home,
      graceMs,
      leaseMs,
      warn,
      onCommand,
      mayStart: () => !this.#isFenced,
      workspaces: this.#workspaces,
      variables: harmlessVariables(workspaces?.env ?? {}),
      ...(foreground === undefined ? {} : { foreground }),
      ...(live === undefined ? {} : { live }),
    }
  }

  #hold(claim: Claim, carryOut: (executor: Executor) => Promise<void>): Promise<void> {
    const { warn, telemetry } = this.#options
    const executor = this.#executor()
    const carry = () => carryOut(executor)
    // Begun after it is held: an agent says at once how it can be stopped, and a cancel must find that.
    const settled = Promise.resolve()
      .then(() => telemetry?.attempt(claim, carry) ?? carry())
      .then(() => this.#wakeAfter(claim).catch((error: unknown) => warn(describeError(error))))
      .catch((error: unknown) => {
        warn(`run ${claim.run.id} will be recovered: ${describeError(error)}`)
        return this.#notCarriedOut(refOf(claim), describeError(error), claim.attempt.mark)
      })
      .finally(() => this.#letGo(claim.attempt.id))
    this.#held.set(claim.attempt.id, { claim, settled })
    return settled
  }

  /** Given to the next who looks, this worker included; but not for ever. It ends when nothing that bears its mark runs any more. */
  async #notCarriedOut(ref: AttemptRef, error: string, mark?: string): Promise<void> {
    const recoveries = await this.#options.store.read(takeoversOf, ref.runId).catch(() => 0)
    if (recoveries < LIMITS.recoveries) return void this.#unsettled.push(ref)
    const outcome = { state: 'failed', code: 'internal', error: `it could not be carried out: ${error}` } as const
    try {
      if (mark !== undefined && (await this.#options.store.read(findRun, ref.runId))?.fence === ref.fence)
        await sweepByMark(mark)
      await this.#options.store.apply(finishRun, ref, outcome)
    } catch {
      this.#unsettled.push(ref)
    }
  }

  #letGo(attempt: AttemptId): void {
    this.#held.delete(attempt)
    this.#look()
  }

  async #noticeCancels(): Promise<void> {
    if (this.#held.size + this.#calls.size === 0) return
    const cancelled = await this.#options.store.read(cancelledAttempts, this.id).catch(() => [])
    for (const { attemptId } of cancelled) {
      this.#held.get(attemptId)?.command?.stop('cancelled')
      this.#calls.halt(attemptId, 'cancelled')
    }
  }

  /** What was taken over is the taker's: its command too, so it is not stopped here. */
  #giveUp(lost: readonly AttemptId[]): void {
    for (const attempt of lost) {
      this.#held.delete(attempt)
      this.#calls.forget(attempt)
    }
    void this.#noticeCancels()
  }

  /**
   * On PostgreSQL another machine may take over once the lease is over. On SQLite nobody can without the lock that this
   * worker could not get, and whoever does adopts the commands: stopping them would protect nothing.
   */
  get #isFenced(): boolean {
    return this.#options.store.engine !== 'sqlite' && this.#lease.isFenced
  }

  /** What another worker on this host has adopted meanwhile is not stopped by this: it has a higher fence (`processes/supervised.ts`). */
  #stopAll(): void {
    if (!this.#isFenced) return
    if (this.#held.size > 0) this.#options.warn('the lease could not be renewed in time; stopping its commands')
    for (const { command } of this.#held.values()) command?.stop('lease-lost')
    for (const attempt of this.#calls.held()) this.#calls.halt(attempt, 'lease-lost')
  }
}

/** What can give a worker something to do; of other processes' commits nobody knows what they are about. */
const CANCELS = ['run.cancel_requested']
const CALLS = [CALL_QUEUED, 'run.resumed', 'run.requeued']
const RUNS = ['run.queued', 'run.resumed', 'run.requeued', 'run.finished', 'run.parked', 'breaker.reset']
const isAbout = (topics: ReadonlySet<string> | undefined, wanted: readonly string[]) =>
  topics === undefined || wanted.some((topic) => topics.has(topic))
