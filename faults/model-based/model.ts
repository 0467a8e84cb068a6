/**
 * What Holdfast is supposed to do, said once more and as simply as possible: plain lists, no database, nothing of ours. Each
 * verb answers with a word, changes the lists, and tells of it in the order in which the log does.
 */

export const LEASE_MS = 15_000
export const APPROVAL_MS = 20_000
export const DELAY_MS = 1_000

type Texts<Name extends string> = Record<Name, string>
type Perhaps<Name extends string> = Partial<Record<Name, string | undefined>>
type Numbers<Name extends string> = Record<Name, number>

interface Thread extends Texts<'id' | 'agent'>, Perhaps<'parentId'>, Numbers<'generation' | 'createdAt'> {
  state: 'open' | 'removed'
}

interface Asked extends Texts<'id' | 'threadId' | 'agent'>, Perhaps<'asked' | 'key' | 'parent'> {
  priority: number
}

interface Run extends Asked, Perhaps<'parkedFor' | 'code'>, Numbers<'attempt' | 'fence' | 'createdAt'> {
  kind: 'command' | 'agent'
  state: 'queued' | 'running' | 'parked' | 'succeeded' | 'failed' | 'cancelled'
  isCancelled: boolean
  endedAt?: number
}

export interface Attempt
  extends Texts<'id' | 'runId' | 'workerId'>, Perhaps<'outcome'>, Numbers<'fence' | 'leaseUntil'> {
  isReleased: boolean
}

interface News extends Texts<'id' | 'threadId' | 'key'> {
  from: string | null
  kind: 'prompt' | 'completion' | 'error' | 'notice'
}

interface Message extends News, Perhaps<'reason' | 'delivery' | 'consumedByRun'>, Numbers<'generation' | 'createdAt'> {
  state: 'pending' | 'leased' | 'consumed' | 'dead'
}

interface Action extends Texts<'id' | 'runId' | 'threadId'> {
  state: 'waiting' | 'approved' | 'denied' | 'skipped' | 'expired' | 'withdrawn'
  /** What is asked of a person about it. */
  approval: Exclude<Action['state'], 'waiting'> | 'pending'
  expiresAt: number
}

interface Schedule extends Texts<'id' | 'name'>, Numbers<'firings' | 'failures'> {
  state: 'active' | 'paused' | 'ended' | 'removed'
  nextAt: number | undefined
}

interface Occurrence extends Texts<'id' | 'schedule'>, Perhaps<'runId'> {
  state: 'dispatched' | 'succeeded' | 'failed' | 'skipped'
}

type Told = readonly [type: string, threadId?: string | undefined, runId?: string | undefined]
type Ending = 'succeeded' | 'failed' | 'cancelled'
const OPEN = ['queued', 'running', 'parked']

export class Model {
  now = 0
  readonly threads: Thread[] = []
  readonly runs: Run[] = []
  readonly attempts: Attempt[] = []
  readonly messages: Message[] = []
  readonly actions: Action[] = []
  readonly schedules: Schedule[] = []
  readonly occurrences: Occurrence[] = []
  readonly log: Told[] = []

  run = (id: string): Run => this.runs.find((run) => run.id === id)!
  thread = (id: string): Thread | undefined => this.threads.find((thread) => thread.id === id)
  readonly #tell = (...told: Told) => void this.log.push(told)
  readonly #pending = (of: string) => this.messages.filter((each) => each.threadId === of && each.state === 'pending')
  readonly #active = (of: string) => this.runs.find((run) => run.threadId === of && OPEN.includes(run.state))

  readonly isBusy = (threadId: string): boolean => this.#active(threadId) !== undefined

  open(id: string, agent: string, parentId?: string): Thread {
    const known = this.thread(id)
    if (known?.state === 'open') return known
    const thread = known ?? { id, agent, state: 'open', generation: 0, createdAt: this.now }
    if (known === undefined) this.threads.push(thread)
    Object.assign(thread, { agent, state: 'open', generation: thread.generation + 1, parentId, createdAt: this.now })
    this.#tell('thread.created', id)
    return thread
  }

  submit(asked: Asked): string {
    const known = asked.key === undefined ? undefined : this.runs.find(({ key }) => key === asked.key)
    if (known !== undefined) return known.asked === asked.asked ? 'existing' : 'conflict'
    this.open(asked.threadId, asked.agent, asked.parent)
    this.#queue(asked, 'command')
    return 'submitted'
  }

  #queue(asked: Asked, kind: Run['kind']): void {
    this.runs.push({ ...asked, kind, state: 'queued', attempt: 0, fence: 0, createdAt: this.now, isCancelled: false })
    this.#tell('run.queued', asked.threadId, asked.id)
  }

  /** The most important, then the first, of threads on which nobody is at work. */
  claim(workerId: string, attemptId: string): string {
    const isBusy = ({ threadId }: Run) =>
      this.runs.some((run) => run.threadId === threadId && (run.state === 'running' || run.state === 'parked'))
    const waiting = this.runs.filter((run) => run.state === 'queued' && !isBusy(run))
    const run = waiting.toSorted((a, b) => b.priority - a.priority)[0]
    if (run === undefined) return 'nothing'
    run.state = 'running'
    return this.#begin(run, workerId, attemptId, 'run.started')
  }

  #begin(run: Run, workerId: string, id: string, told: string): string {
    Object.assign(run, { fence: run.fence + 1, attempt: run.attempt + 1 })
    const { id: runId, fence, threadId } = run
    this.attempts.push({ id, runId, fence, workerId, leaseUntil: this.now + LEASE_MS, isReleased: false })
    this.#tell(told, threadId, runId)
    return runId
  }

  renew(workerId: string): string {
    const mine = this.attempts.filter((each) => each.workerId === workerId && !each.outcome && !each.isReleased)
    for (const attempt of mine) attempt.leaseUntil = this.now + LEASE_MS
    return String(mine.length)
  }

  /** Whose claim it is: only the newest attempt at a run that is running may change anything. */
  readonly #holds = ({ runId, fence }: Attempt) =>
    this.run(runId).state === 'running' && this.run(runId).fence === fence

  finish(attempt: Attempt, ending: Ending): string {
    const run = this.run(attempt.runId)
    if (!this.#holds(attempt) || (ending === 'cancelled' && !run.isCancelled)) return `reconciled ${run.state}`
    const isLate = run.isCancelled && ending !== 'cancelled'
    if (isLate) this.#tell('run.late_result', undefined, run.id)
    this.#end(run, isLate ? 'cancelled' : ending, attempt)
    return isLate ? 'reconciled cancelled' : `finished ${ending}`
  }

  #end(run: Run, ending: Ending, attempt?: Attempt): void {
    Object.assign(run, { state: ending, endedAt: this.now, code: ending === 'failed' ? 'exit' : undefined })
    if (attempt !== undefined) attempt.outcome = ending
    for (const action of this.actions.filter(({ runId }) => runId === run.id)) {
      if (action.state === 'waiting' || action.state === 'approved') action.state = 'withdrawn'
      if (action.approval === 'pending' || action.approval === 'approved') action.approval = 'withdrawn'
    }
    if (run.kind === 'agent' && ending !== 'succeeded') this.#answerUntaken(run)
    this.#settleFiring(run)
    if (run.parent !== undefined) this.#tellParent(run, run.parent)
    this.#tell('run.finished', run.threadId, run.id)
  }

  /** What it was started for has its answer with it; after a cancel only what was asked, not the news of others. */
  #answerUntaken(run: Run): void {
    if (this.messages.some(({ consumedByRun }) => consumedByRun === run.id)) return
    this.#consume(run, ({ kind }) => run.state === 'failed' || kind === 'prompt')
  }

  #consume(run: Run, isTaken: (message: Message) => boolean = () => true): void {
    for (const message of this.#pending(run.threadId).filter(isTaken)) {
      Object.assign(message, { state: 'consumed', consumedByRun: run.id })
      this.#tell('message.consumed', run.threadId, run.id)
    }
  }

  park(attempt: Attempt, parkedFor: string): string {
    const run = this.run(attempt.runId)
    if (!this.#holds(attempt) || run.isCancelled) return 'refused'
    Object.assign(run, { state: 'parked', parkedFor })
    attempt.outcome = 'parked'
    this.#tell('run.parked', run.threadId, run.id)
    return 'parked'
  }

  resume(run: Run): string {
    if (run.state !== 'parked') return 'nothing'
    Object.assign(run, { state: 'queued', parkedFor: undefined })
    this.#tell('run.resumed', run.threadId, run.id)
    return 'resumed'
  }

  cancel(run: Run): string {
    if (!OPEN.includes(run.state)) return 'already-terminal'
    if (run.isCancelled) return 'requested'
    run.isCancelled = true
    this.#tell('run.cancel_requested', run.threadId, run.id)
    if (run.state === 'running') return 'requested'
    this.#end(run, 'cancelled')
    return 'cancelled'
  }

  takeOver(held: Attempt, ground: 'owner-dead' | 'lease-over' | 'released', workerId: string, id: string): string {
    const grounds = { 'owner-dead': true, 'lease-over': held.leaseUntil < this.now, released: held.isReleased }
    if (!this.#holds(held) || held.outcome !== undefined || !grounds[ground]) return 'nothing'
    held.outcome = 'superseded'
    return this.#begin(this.run(held.runId), workerId, id, 'run.taken_over')
  }

  handOver(attempt: Attempt): string {
    if (attempt.outcome !== undefined || attempt.isReleased) return 'false'
    Object.assign(attempt, { isReleased: true, leaseUntil: this.now })
    this.#tell('run.handed_over', undefined, attempt.runId)
    return 'true'
  }

  send(id: string, threadId: string, key: string, runId: string): string {
    const { generation } = this.open(threadId, 'clerk')
    const message = this.#accept({ id, threadId, from: null, kind: 'prompt', key }, generation)
    if (message.state !== 'pending') return `${message.id} ${message.state} ${message.consumedByRun ?? '-'}`
    return `${message.id} pending ${this.wake(threadId, runId)}`
  }

  #accept(message: News, generation: number, about?: string): Message {
    const { threadId, key } = message
    const isKnown = (each: Message) => each.threadId === threadId && each.generation === generation && each.key === key
    const known = this.messages.find(isKnown)
    if (known !== undefined) return known
    const stored: Message = { ...message, generation, state: 'pending', createdAt: this.now }
    this.messages.push(stored)
    if (message.kind !== 'notice') this.#tell('message.accepted', threadId, about)
    return stored
  }

  /** The run that sees to what waits in a thread: one that is there, or a new one. */
  wake(threadId: string, runId: string): string {
    const active = this.#active(threadId)
    if (active !== undefined) return active.id
    if (this.#pending(threadId).length === 0) return '-'
    const { agent } = this.thread(threadId)!
    this.#queue({ id: runId, threadId, agent, priority: 0 }, 'agent')
    return runId
  }

  /** Threads with something that nobody is at work on. News that was there when the last run was cancelled asks for none. */
  idle(): string[] {
    const lastCancel = (threadId: string) => {
      const last = this.runs.findLast((run) => run.threadId === threadId)
      return last?.state === 'cancelled' ? last.endedAt! : -1
    }
    const asks = ({ kind, createdAt, threadId }: Message) =>
      kind === 'prompt' || kind === 'notice' || createdAt > lastCancel(threadId)
    return this.threads
      .filter(({ state, agent }) => state === 'open' && agent === 'clerk')
      .filter(({ id }) => this.#active(id) === undefined && this.#pending(id).some(asks))
      .map(({ id }) => id)
      .toSorted()
  }

  #tellParent(run: Run, parent: string): void {
    const recipient = this.thread(parent)!
    const kind = run.state === 'failed' ? 'error' : 'completion'
    const news = { id: `msg_${run.id}`, threadId: parent, from: run.threadId, kind, key: `run:${run.id}` } as const
    const message = this.#accept(news, recipient.generation, run.id)
    const isLater = recipient.generation > 1 && run.createdAt < recipient.createdAt
    if (recipient.state === 'removed' || isLater) this.#bury(message)
  }

  /** A dead letter, of which its sender hears if it is there. */
  #bury(message: Message): void {
    Object.assign(message, { state: 'dead', reason: 'recipient removed', delivery: undefined })
    this.#tell('message.dead', message.threadId)
    const sender = message.from === null ? undefined : this.thread(message.from)
    if (sender?.state !== 'open' || message.kind === 'notice') return
    const notice = { id: `msg_dead_${message.id}`, threadId: sender.id, from: null, kind: 'notice' } as const
    this.#accept({ ...notice, key: `dead:${message.id}` }, sender.generation)
  }

  take(attempt: Attempt): string {
    this.#consume(this.run(attempt.runId))
    return 'taken'
  }

  lease(delivery: string, threadId: string, most: number): string {
    const leased = this.#pending(threadId).slice(0, most)
    for (const message of leased) Object.assign(message, { state: 'leased', delivery })
    if (leased.length > 0) this.#tell('message.leased', threadId)
    return leased.map(({ id }) => id).join(' ')
  }

  readonly #leased = (id: string) => this.messages.filter((each) => each.delivery === id && each.state === 'leased')

  acknowledge(delivery: string): string {
    const seen = this.#leased(delivery)
    for (const message of seen) message.state = 'consumed'
    for (const { threadId } of seen) this.#tell('message.consumed', threadId)
    return String(seen.length)
  }

  giveBack(delivery: string): string {
    const unseen = this.#leased(delivery)
    for (const message of unseen) Object.assign(message, { state: 'pending', delivery: undefined })
    if (unseen.length > 0) this.#tell('message.returned', unseen[0]!.threadId)
    return String(unseen.length)
  }

  remove(threadId: string): string {
    const thread = this.thread(threadId)
    if (thread === undefined) return 'unknown'
    if (thread.state === 'removed') return 'already-removed'
    if (this.#active(threadId) !== undefined) return 'busy'
    thread.state = 'removed'
    const isLeft = (each: Message) => each.threadId === threadId && ['pending', 'leased'].includes(each.state)
    const left = this.messages.filter(isLeft)
    for (const message of left) this.#bury(message)
    for (const child of this.threads) if (child.parentId === threadId) child.parentId = undefined
    this.#tell('thread.removed', threadId)
    return `removed ${left.length}`
  }

  propose(id: string, attempt: Attempt): string {
    const { id: runId, threadId } = this.run(attempt.runId)
    const expiresAt = this.now + APPROVAL_MS
    this.actions.push({ id, runId, threadId, state: 'waiting', approval: 'pending', expiresAt })
    this.#tell('action.proposed', threadId, runId)
    this.#tell('approval.requested', threadId, runId)
    return 'waiting'
  }

  decide(action: Action, state: 'approved' | 'denied' | 'skipped'): string {
    if (action.approval !== 'pending' || action.expiresAt <= this.now) return 'too-late'
    Object.assign(action, { state, approval: state })
    const { threadId, runId } = action
    if (state !== 'approved') this.#tell('action.settled', threadId, runId)
    this.#tell('approval.decided', threadId, runId)
    this.#decided(runId)
    return 'decided'
  }

  #decided(runId: string): void {
    if (this.run(runId).parkedFor === 'a decision') this.resume(this.run(runId))
  }

  expire(): string {
    const over = this.actions.filter(
      (each) => ['pending', 'approved'].includes(each.approval) && each.expiresAt <= this.now,
    )
    for (const action of over) {
      Object.assign(action, { state: 'expired', approval: 'expired' })
      this.#tell('action.settled', action.threadId, action.runId)
      this.#tell('approval.expired', action.threadId, action.runId)
      this.#decided(action.runId)
    }
    return String(over.length)
  }

  schedule(id: string, name: string): string {
    const isAlive = ({ state }: Schedule) => state === 'active' || state === 'paused'
    if (this.schedules.some((each) => each.name === name && isAlive(each))) return 'taken'
    this.schedules.push({ id, name, state: 'active', nextAt: this.now + DELAY_MS, firings: 0, failures: 0 })
    this.#tell('schedule.created')
    return 'added'
  }

  steer(schedule: Schedule, to: 'paused' | 'active'): string {
    if (schedule.state === 'ended' || schedule.state === 'removed') return 'over'
    if (schedule.state === to) return 'already'
    schedule.state = to
    this.#tell(to === 'paused' ? 'schedule.paused' : 'schedule.resumed')
    return to === 'paused' ? 'paused' : 'resumed'
  }

  fire(schedule: Schedule, threadId: string, runId: string): string {
    const { state, nextAt } = schedule
    if (state !== 'active' || nextAt === undefined) return 'lost'
    if (nextAt > this.now) return 'not-due'
    Object.assign(schedule, { nextAt: undefined, firings: schedule.firings + 1 })
    this.occurrences.push({ id: `${schedule.id}.${nextAt}`, schedule: schedule.id, state: 'dispatched', runId })
    this.open(threadId, 'command')
    this.#queue({ id: runId, threadId, agent: 'command', priority: 0 }, 'command')
    this.#tell('occurrence.dispatched', threadId, runId)
    return 'fired'
  }

  unschedule(schedule: Schedule): string {
    const { state, nextAt, id } = schedule
    if (state === 'removed') return 'already'
    if (nextAt !== undefined && nextAt <= this.now) {
      this.occurrences.push({ id: `${id}.${nextAt}`, schedule: id, state: 'skipped' })
      this.#tell('occurrence.settled')
    }
    Object.assign(schedule, { state: 'removed', nextAt: undefined })
    this.#tell('schedule.ended')
    return 'removed'
  }

  #settleFiring(run: Run): void {
    const firing = this.occurrences.find(({ runId, state }) => runId === run.id && state === 'dispatched')
    if (firing === undefined) return
    const schedule = this.schedules.find(({ id }) => id === firing.schedule)!
    firing.state = run.state === 'succeeded' ? 'succeeded' : 'failed'
    schedule.failures = run.state === 'succeeded' ? 0 : schedule.failures + 1
    this.#tell('occurrence.settled', run.threadId, run.id)
    if (schedule.state === 'removed') return
    schedule.state = 'ended'
    this.#tell('schedule.ended')
  }
}
